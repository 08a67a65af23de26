package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// TestARemovalRunsOnce: callers share the attempt in progress, and its result stays once the
// znode is known to be deleted.
func TestARemovalRunsOnce(t *testing.T) {
	for _, result := range []error{nil, recipes.ErrNotHeld} {
		synctest.Test(t, func(t *testing.T) {
			var r session.Removal
			started := 0
			var settle func(error)
			start := func(s func(error)) { started++; settle = s }
			results := make(chan error, 2)
			for range 2 {
				go func() { results <- r.Run(t.Context(), "remove", start) }()
			}
			synctest.Wait()
			r.Start(start)
			settle(result)
			for range 2 {
				if err := <-results; err != result {
					t.Errorf("Run returned %v, want %v", err, result)
				}
			}
			if err := r.Run(t.Context(), "remove", start); err != result {
				t.Errorf("a later Run returned %v, want %v", err, result)
			}
			if started != 1 {
				t.Errorf("it was started %d times", started)
			}
		})
	}
}

// TestARefusedRemovalRunsAgain: no other client would delete the znode.
func TestARefusedRemovalRunsAgain(t *testing.T) {
	var r session.Removal
	if err := r.Run(t.Context(), "remove", func(settle func(error)) { settle(recipes.ErrAccessDenied) }); err != recipes.ErrAccessDenied {
		t.Fatal(err)
	}
	must.Report(t, r.Run(t.Context(), "remove", func(settle func(error)) { settle(nil) }))
}

// TestARemovalThatWasRefusedBeforeIsNotTheAnswer: an attempt in progress may have been refused
// before the call began.
func TestARemovalThatWasRefusedBeforeIsNotTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r session.Removal
		var settle func(error)
		r.Start(func(s func(error)) { settle = s })
		result := make(chan error, 1)
		go func() { result <- r.Run(t.Context(), "remove", func(settle func(error)) { settle(nil) }) }()
		synctest.Wait()
		settle(recipes.ErrAccessDenied)
		must.Report(t, <-result)
	})
}

// TestARemovalIsAwaitedTwiceAtMost: a caller that joins a later attempt returns its result,
// even if that is another refusal.
func TestARemovalIsAwaitedTwiceAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r session.Removal
		settles := make(chan func(error), 10)
		start := func(settle func(error)) { settles <- settle }
		r.Start(start)
		results := make(chan error, 2)
		for range 2 {
			go func() { results <- r.Run(t.Context(), "remove", start) }()
		}
		for range 2 {
			synctest.Wait()
			(<-settles)(recipes.ErrAccessDenied)
		}
		synctest.Wait()
		if len(results) != 2 || len(settles) != 0 {
			t.Fatalf("%d of 2 have a result, and %d more tries have begun", len(results), len(settles))
		}
		for range 2 {
			if err := <-results; err != recipes.ErrAccessDenied {
				t.Error(err)
			}
		}
	})
}

// TestARemovalOutlivesItsCaller: the deletion continues after a caller gives up, even if its
// context was already done.
func TestARemovalOutlivesItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var r session.Removal
	var settle func(error)
	err := r.Run(ctx, "remove", func(s func(error)) { settle = s })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
	settle(nil)
	if err := r.Run(ctx, "remove", nil); err != nil {
		t.Errorf("the result counts more than the ended context: %v", err)
	}
}
