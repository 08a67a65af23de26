package run

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// heldGrant is a grant until lost is done.
type heldGrant struct {
	recipes.Grant
	lost context.Context
}

func (g heldGrant) Done() <-chan struct{} { return g.lost.Done() }

func (g heldGrant) Err() error {
	if g.lost.Err() != nil {
		return fmt.Errorf("%w: %w", recipes.ErrNotHeld, recipes.ErrSessionLost)
	}
	return nil
}

// TestASuccessIsRecordedWhenTheServersAreBack: it is not recorded if the lock is lost or a signal
// arrives first.
func TestASuccessIsRecordedWhenTheServersAreBack(t *testing.T) {
	for _, tt := range []struct {
		name           string
		lost, signaled time.Duration // after the command's end
		code           int
	}{
		{"the servers are back", 2 * time.Hour, 2 * time.Hour, exit.OK},
		{"the lock is lost", time.Minute, 2 * time.Hour, exit.Lost},
		{"a signal arrives", 2 * time.Hour, time.Minute, exit.Own},
	} {
		synctest.Test(t, func(t *testing.T) {
			lost, cancel := context.WithTimeout(t.Context(), tt.lost)
			defer cancel()
			after, stop := context.WithTimeoutCause(t.Context(), tt.signaled, job.Interruption{})
			defer stop()
			away, back := context.WithTimeout(t.Context(), time.Hour)
			defer back()
			h := grant{
				Grant:    heldGrant{lost: lost},
				giveBack: func(context.Context) error { return nil },
				count: func(ctx context.Context) error {
					select {
					case <-away.Done():
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				},
			}
			err := (&guard{path: "/l", t: &verb.Tool{Stderr: io.Discard}}).end(h, &holding{after: after}, "")
			if code := exit.Code(err, -1); code != tt.code {
				t.Errorf("%s: exit code %d (%v), want %d", tt.name, code, err, tt.code)
			}
		})
	}
}
