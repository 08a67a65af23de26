package exit_test

import (
	"context"
	"io"
	"testing"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestInterruptDoesNotReplaceAnAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for err, want := range map[error]int{exit.Answer(exit.Failed): exit.Failed, exit.Answer(exit.Invalid): exit.Invalid, exit.Unwritten(exit.Answer(exit.Invalid)): exit.Failed} {
		if code := exit.Code(ctx, io.Discard, "run", err); code != want {
			t.Errorf("%v: exit code %d; want %d", err, code, want)
		}
	}
}
