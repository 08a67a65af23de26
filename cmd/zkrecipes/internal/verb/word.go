package verb

import (
	"context"
	"crypto/tls"
	"io"
	"net"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// mostAnswer bounds the answer to a four-letter word. "dump" lists all sessions and their znodes.
const mostAnswer = 64 << 20

// AskWord sends a four-letter word and returns the answer, or "". With TLS a server may end the
// connection without a closing alert, so an error after the answer does not count.
func AskWord(ctx context.Context, security *recipes.TLS, server, word string) string {
	dial := new(net.Dialer).DialContext
	if security != nil {
		cfg, err := security.ClientConfig()
		if err != nil {
			return ""
		}
		dial = (&tls.Dialer{Config: cfg}).DialContext
	}
	conn, err := dial(ctx, "tcp", server)
	if err != nil {
		return ""
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, _ = io.WriteString(conn, word) // if it fails, there is no answer
	answer, _ := io.ReadAll(io.LimitReader(conn, mostAnswer))
	return string(answer)
}
