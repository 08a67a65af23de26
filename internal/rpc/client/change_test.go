package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestCancelledPutIsAnsweredForAMoment: the plugin has that long to say what has
// become of it. One that stands still does not keep the caller waiting.
func TestCancelledPutIsAnsweredForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		q, err := l.open(t, 0).Queue("/q", recipes.QueueConfig{Capacity: 1})
		if err != nil {
			t.Fatal(err)
		}
		l.wire.freeze()
		c, cancel := context.WithCancel(ctx(t))
		defer cancel()
		result := make(chan error, 1)
		go func() { _, err := q.Put(c, []byte("x")); result <- err }()
		synctest.Wait()
		cancel()
		cancelled := time.Now()
		matches(t, <-result, recipes.ErrUnknownOutcome, context.Canceled)
		if d := time.Since(cancelled); d != 250*time.Millisecond {
			t.Errorf("it took %v", d)
		}
	})
}
