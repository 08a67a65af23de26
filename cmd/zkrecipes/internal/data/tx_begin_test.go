package data

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// beginning is a transaction whose Begin takes a given time.
type beginning struct {
	recipes.Transaction
	takes time.Duration
}

func (b beginning) Begin(ctx context.Context, _ []byte, _ ...string) error {
	select {
	case <-time.After(b.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A signal does not end Begin at once: if the transaction was created, it has to be aborted.
// CloseTimeout later the signal ends Begin.
func TestSignalEndsBeginOnlyAfterCloseTimeout(t *testing.T) {
	for _, tt := range []struct{ takes, want time.Duration }{
		{verb.CloseTimeout / 2, verb.CloseTimeout / 2},
		{time.Hour, verb.CloseTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			asked := time.Now()
			err := new(txBeginVerb).beginTransaction(ctx, beginning{takes: tt.takes}, nil)
			if tt.want < tt.takes != errors.Is(err, context.Canceled) {
				t.Errorf("%v: %v", tt.takes, err)
			}
			if took := time.Since(asked); took != tt.want {
				t.Errorf("%v: it took %v; want %v", tt.takes, took, tt.want)
			}
		})
	}
}
