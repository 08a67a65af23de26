package verb

import (
	"context"
	"crypto/tls"

	"github.com/zkrecipes/zkrecipes/internal/fourletter"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// AskWord sends a four-letter word and returns the answer, or "" after an error.
func AskWord(ctx context.Context, security *recipes.TLS, server, word string) string {
	var cfg *tls.Config
	if security != nil {
		var err error
		if cfg, err = security.ClientConfig(); err != nil {
			return ""
		}
	}
	answer, _ := fourletter.Dialer(cfg).Ask(ctx, server, word)
	return answer
}
