package link_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The plugin has a moment to report the outcome. A frozen plugin does not block the caller.
func TestCancelledPutIsAnsweredForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		q := must.Get(l.open(t, 0).Queue("/q", recipes.QueueConfig{Capacity: 1}))(t)
		l.wire.freeze()
		c, cancel := context.WithCancel(ctx(t))
		defer cancel()
		result := make(chan error, 1)
		go func() { _, err := q.Put(c, []byte("x")); result <- err }()
		synctest.Wait()
		cancel()
		cancelled := time.Now()
		matches(t, <-result, recipes.ErrUnknownOutcome, context.Canceled)
		if d := time.Since(cancelled); d != time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// The stream reports the loss first, and the call's answer says that nothing was put. If the
// plugin does not answer, the outcome is unknown.
func TestChangeOutlastsItsSessionForAMoment(t *testing.T) {
	const answerTime = time.Second
	for name, test := range map[string]struct {
		answers time.Duration // after the loss
		unknown bool
	}{
		"answered in time": {answerTime / 2, false},
		"too late":         {2 * answerTime, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zk, dial := zktest.Piped(t)
				l := newLinkOver(t, func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
					s, err := dial.Open(ctx, cfg)
					return slowToRefuse{s, test.answers}, err
				})
				s := must.Get(l.client.Open(ctx(t), recipes.SessionConfig{Servers: []string{"zk.test:2181"}}))(t)
				q := must.Get(s.Queue("/q", recipes.QueueConfig{}))(t)
				result := make(chan error, 1)
				go func() { _, err := q.Put(ctx(t), []byte("x")); result <- err }()
				synctest.Wait()
				zk.ExpireSession(s.ID())
				<-s.Done()
				lost := time.Now()
				err := <-result
				matches(t, err, recipes.ErrExpired)
				if errors.Is(err, recipes.ErrUnknownOutcome) != test.unknown {
					t.Errorf("unknown outcome: want %t: %v", test.unknown, err)
				}
				if d := time.Since(lost); d != min(test.answers, answerTime) {
					t.Errorf("it took %v", d)
				}
			})
		})
	}
}

// slowToRefuse is a session whose queues refuse a Put some time after its loss.
type slowToRefuse struct {
	recipes.Client
	after time.Duration
}

func (s slowToRefuse) Queue(string, recipes.QueueConfig) (recipes.Queue, error) {
	return refusingQueue{s: s}, nil
}

type refusingQueue struct {
	recipes.Queue
	s slowToRefuse
}

func (q refusingQueue) PutMany(context.Context, ...[]byte) ([]recipes.ElementID, error) {
	<-q.s.Done()
	time.Sleep(q.s.after)
	return nil, q.s.Err()
}

// Between the two plugins another client deletes the key and creates it again, with as many
// changes as it had before.
func TestAChangeThatWasNotBegunIsMadeByTheNextPlugin(t *testing.T) {
	t.Parallel()
	s, before, after, move := moving(t)
	c := must.Get(s.Configuration("/c"))(t)
	revision := must.Get(c.Set(ctx(t), "key", []byte("before"), recipes.NoRevision))(t)
	before.refuse("SetKey", func() error {
		must.Report(t, c.Delete(ctx(t), "key", recipes.AnyRevision))
		must.Get(c.Set(ctx(t), "key", []byte("theirs"), recipes.NoRevision))(t)
		move()
		return recipes.ErrSessionLost // like a plugin that has detached the session
	})
	_, err := c.Set(ctx(t), "key", []byte("mine"), revision)
	matches(t, err, recipes.ErrBadVersion)
	if e, err := c.Get(ctx(t), "key"); string(e.Value) != "theirs" || after.count("SetKey") != 1 {
		t.Errorf("the value is %q, %v; the next plugin was called %d times", e.Value, err, after.count("SetKey"))
	}
}
