package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// requestOf returns a request for a new grant.
func requestOf(id string) *pb.AcquireRequest { return &pb.AcquireRequest{RequestId: id} }

// An acquireStub waits for a grant, whatever the request.
type acquireStub = func(ctx context.Context, joined func(recipes.Place)) (*grant, error)

func (a *acquisitions) callWith(ctx context.Context, r *pb.AcquireRequest, acquire acquireStub) (*acquisition, error) {
	return a.call(ctx, target{session: a.ss}, r, func(ctx context.Context, _ target, _ *pb.AcquireRequest, joined func(recipes.Place)) (*grant, error) {
		return acquire(ctx, joined)
	})
}

// stub is a grant without methods of its own.
type stub struct{ recipes.Grant }

// A grant whose release was refused can still be released, even after many others have ended. The
// same applies to a grant that has ended although its znode may exist.
func TestGrantIsKnownUntilItsZnodeIsDeleted(t *testing.T) {
	for _, end := range []struct {
		name  string
		note  func(ts *acquisitions, c *acquisition)
		known bool
	}{
		{"released", func(ts *acquisitions, c *acquisition) { ts.released(c, nil) }, false},
		{"released when it was lost", func(ts *acquisitions, c *acquisition) { ts.released(c, recipes.ErrRemoved) }, false},
		{"refused", func(ts *acquisitions, c *acquisition) { ts.released(c, recipes.ErrAccessDenied) }, true},
		{"removed", func(ts *acquisitions, c *acquisition) { ts.finishIfGone(c, recipes.ErrRemoved) }, false},
		{"lost with the session", func(ts *acquisitions, c *acquisition) { ts.finishIfGone(c, recipes.ErrExpired) }, false},
		{"not to be watched", func(ts *acquisitions, c *acquisition) { ts.finishIfGone(c, recipes.ErrNotHeld) }, true},
		{"being released", func(ts *acquisitions, c *acquisition) { ts.finishIfGone(c, recipes.ErrReleased) }, true},
	} {
		ts := newAcquisitions(nil, 1)
		hold := func(id string) *acquisition {
			c := &acquisition{id: id, done: make(chan struct{}), grant: &grant{Grant: stub{}}}
			close(c.done)
			ts.all[id] = c
			return c
		}
		end.note(ts, hold("it"))
		for i := range remembered {
			ts.finished(hold(fmt.Sprint(i)))
		}
		if _, err := ts.granted("it"); (err == nil) != end.known {
			t.Errorf("%s: %v", end.name, err)
		}
	}
}

// A session remembers a limited number of ended acquisitions, the latest ones. They do not
// count as held.
func TestEndedAcquisitionsAreForgotten(t *testing.T) {
	ss := &session{ctx: t.Context()}
	ts := newAcquisitions(ss, 1)
	const calls = 2*remembered + 1
	for i := range calls {
		ts.abandon(fmt.Sprint("never called ", i))
	}
	for i := range calls {
		_, err := ts.callWith(t.Context(), requestOf(fmt.Sprint(i)), func(context.Context, func(recipes.Place)) (*grant, error) {
			return nil, recipes.ErrContended
		})
		if err != recipes.ErrContended {
			t.Fatal(err)
		}
	}
	if len(ts.all) != remembered || len(ts.ended) != remembered {
		t.Errorf("%d acquisitions, %d of them ended; want %d", len(ts.all), len(ts.ended), remembered)
	}
	for i, want := range map[int]bool{0: false, remembered: false, remembered + 1: true, calls - 1: true} {
		if ts.knows(fmt.Sprint(i)) != want {
			t.Errorf("call %d of %d is known: %v", i, calls, !want)
		}
	}
}

// A failed resume is forgotten, but does not make room for another grant.
func TestARetriedResumeIsNotCountedAsEnded(t *testing.T) {
	ts := newAcquisitions(&session{ctx: t.Context()}, 1)
	resume := func(id string, end error) (*acquisition, error) {
		return ts.callWith(t.Context(), &pb.AcquireRequest{RequestId: id, Resumed: &pb.Grant{Token: 1}}, func(context.Context, func(recipes.Place)) (*grant, error) { return &grant{}, end })
	}
	c, _ := resume("it", recipes.ErrUnavailable)
	ts.retry(c)
	must.Get(resume("it", nil))(t)
	ts.retry(c) // of the earlier call
	must.Get(ts.granted("it"))(t)
	if _, err := resume("next", nil); !errors.Is(err, recipes.ErrLimit) {
		t.Errorf("beyond the limit: %v", err)
	}
}

// A caller whose context has ended cannot read its grant, so the grant is released, whether
// the context ended before the grant or after it. While another caller waits for the same
// grant, it is kept. A call that is repeated after the release gets no grant.
func TestGrantOfACancelledCallerIsReleased(t *testing.T) {
	for _, tt := range []struct {
		name string
		// run makes calls. allow makes the acquireStub succeed.
		run  func(t *testing.T, ts *acquisitions, ask acquireStub, allow func())
		back int32
	}{
		{"gone when it is granted", func(t *testing.T, ts *acquisitions, ask acquireStub, allow func()) {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := ts.callWith(ctx, requestOf("it"), func(c context.Context, joined func(recipes.Place)) (*grant, error) {
				allow()
				defer cancel()
				return ask(c, joined)
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the call returned %v", err)
			}
		}, 1},
		{"gone before it is granted", func(t *testing.T, ts *acquisitions, ask acquireStub, allow func()) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			allow()
			_, err := ts.callWith(ctx, requestOf("it"), func(c context.Context, joined func(recipes.Place)) (*grant, error) {
				<-c.Done() // the grant comes too late
				return ask(c, joined)
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the call returned %v", err)
			}
		}, 1},
		{"there", func(t *testing.T, ts *acquisitions, ask acquireStub, allow func()) {
			allow()
			if _, err := ts.callWith(t.Context(), requestOf("it"), ask); err != nil {
				t.Error(err)
			}
		}, 0},
		{"the second of two gone", func(t *testing.T, ts *acquisitions, ask acquireStub, allow func()) {
			stays := make(chan error)
			go func() { _, err := ts.callWith(t.Context(), requestOf("it"), ask); stays <- err }()
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := ts.callWith(ctx, requestOf("it"), ask); !errors.Is(err, context.Canceled) {
				t.Errorf("the call returned %v", err)
			}
			allow()
			must.Report(t, <-stays)
		}, 0},
		{"the first of two gone", func(t *testing.T, ts *acquisitions, ask acquireStub, allow func()) {
			ctx, cancel := context.WithCancel(t.Context())
			leaves, stays := make(chan error, 1), make(chan error, 1)
			go func() { _, err := ts.callWith(ctx, requestOf("it"), ask); leaves <- err }()
			synctest.Wait()
			go func() { _, err := ts.callWith(t.Context(), requestOf("it"), ask); stays <- err }()
			synctest.Wait()
			cancel()
			synctest.Wait()
			allow()
			if err := <-leaves; !errors.Is(err, context.Canceled) {
				t.Errorf("the first call returned %v", err)
			}
			must.Report(t, <-stays)
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				ss := &session{ctx: t.Context()}
				ts := newAcquisitions(ss, 1)
				ss.acquisitions = ts
				granted := make(chan struct{})
				var back atomic.Int32
				tt.run(t, ts, func(context.Context, func(recipes.Place)) (*grant, error) {
					<-granted // even though its context has ended
					return &grant{Grant: stub{}, release: func(context.Context) error { back.Add(1); return nil }}, nil
				}, func() { close(granted) })
				synctest.Wait()
				if got := back.Load(); got != tt.back {
					t.Errorf("released %d times; want %d", got, tt.back)
				}
				_, err := ts.callWith(t.Context(), requestOf("it"), askedOnce(t))
				if given := tt.back > 0; errors.Is(err, context.Canceled) != given {
					t.Errorf("the repeated call returned %v; released: %v", err, given)
				}
				_, err = ts.callWith(t.Context(), requestOf("next"), func(context.Context, func(recipes.Place)) (*grant, error) { return nil, recipes.ErrContended })
				if errors.Is(err, recipes.ErrLimit) != (tt.back == 0) {
					t.Errorf("the next grant: %v", err)
				}
			})
		})
	}
}

// askedOnce is the acquireStub of a repeated call, which must not run.
func askedOnce(t *testing.T) acquireStub {
	return func(context.Context, func(recipes.Place)) (*grant, error) {
		t.Error("a repeated call ran again")
		return nil, recipes.ErrUnsupported
	}
}

// A call that has joined another one gets the result of that call, and only when that call has
// ended.
func TestBothCallersGetTheSessionsEnd(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, _ *zkserver.Server, opened recipes.Client) {
		ctx, cancel := context.WithCancelCause(ctx)
		ss := &session{ctx: ctx, Client: opened}
		ts := newAcquisitions(ss, 1)
		leaves, reported := make(chan struct{}), make(chan error, 2)
		for range 2 {
			go func() {
				_, err := ts.callWith(t.Context(), requestOf("it"), func(c context.Context, _ func(recipes.Place)) (*grant, error) {
					<-c.Done()
					<-leaves
					return nil, c.Err()
				})
				reported <- err
			}()
			synctest.Wait()
		}
		cancel(recipes.ErrExpired)
		synctest.Wait()
		if len(reported) > 0 {
			t.Errorf("got %v before the call has ended", <-reported)
		}
		close(leaves)
		for range 2 {
			if err := <-reported; !errors.Is(err, recipes.ErrExpired) {
				t.Error(err)
			}
		}
	})
}

// A repeated call gets the result of the first.
func TestAbandonAfterTheEndChangesNothing(t *testing.T) {
	ss := &session{ctx: t.Context()}
	ts := newAcquisitions(ss, 1)
	released := &grant{Grant: stub{}, release: func(context.Context) error { t.Error("released again"); return nil }}
	for id, end := range map[string]error{"failed": recipes.ErrContended, "released": nil} {
		c, err := ts.callWith(t.Context(), requestOf(id), func(context.Context, func(recipes.Place)) (*grant, error) { return released, end })
		if err == nil {
			ts.released(c, nil)
		}
		ts.abandon(id)
		ss.tasks.Wait()
		if _, again := ts.callWith(t.Context(), requestOf(id), askedOnce(t)); again != end {
			t.Errorf("%s: the repeated call returned %v; the first %v", id, again, err)
		}
		if _, known := ts.granted(id); errors.Is(known, recipes.ErrNotHeld) != (end != nil) {
			t.Errorf("%s: what it holds: %v", id, known)
		}
	}
}

// An acquireStub's result counts even if the session ends at the same time.
func TestAnswerOutlivesTheSession(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	ts := newAcquisitions(&session{ctx: ctx}, 1)
	_, err := ts.callWith(t.Context(), requestOf("it"), func(context.Context, func(recipes.Place)) (*grant, error) {
		cancel(errShutdown)
		return nil, recipes.ErrContended
	})
	if err != recipes.ErrContended {
		t.Error(err)
	}
}

// A call that found its session before the end does not run after it.
func TestNothingRunsInASessionThatHasEnded(t *testing.T) {
	s := New(Config{})
	_, dial := zktest.Piped(t)
	opened := must.Get(dial.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}}))(t)
	ss := s.start(opened, nil)
	if ss.out.limit != MaxUnsent {
		t.Errorf("it keeps %d bytes for its host", ss.out.limit)
	}
	s.end(ss)
	if _, err := ss.acquisitions.callWith(t.Context(), requestOf("late"), askedOnce(t)); !errors.Is(err, recipes.ErrClosed) {
		t.Error(err)
	}
}

// A release continues after its caller stops waiting. The session can then hold another
// grant.
func TestReleaseOfACancelledCallerContinues(t *testing.T) {
	s := New(Config{})
	ss := &session{ctx: t.Context()}
	ss.acquisitions = newAcquisitions(ss, 1)
	s.sessions[""] = ss
	acquire := func(id string) error {
		_, err := ss.acquisitions.callWith(t.Context(), requestOf(id), func(context.Context, func(recipes.Place)) (*grant, error) {
			return &grant{Grant: stub{}, release: func(ctx context.Context) error { return ctx.Err() }}, nil
		})
		return err
	}
	must.Do(t, acquire("it"))
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := (service{Server: s}).Release(gone, &pb.ReleaseRequest{RequestId: "it"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ss.tasks.Wait()
	if err := acquire("next"); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// Grants that need the host's code end with the host, even if they are granted only then. The
// others are kept.
func TestWhatNeedsTheHostEndsWithIt(t *testing.T) {
	ss := &session{ctx: t.Context()}
	ts := newAcquisitions(ss, 10)
	var mu sync.Mutex
	released := make(map[string]bool)
	late := make(chan struct{})
	ask := func(id string, ends bool, granted <-chan struct{}) {
		_, _ = ts.callWith(t.Context(), requestOf(id), func(context.Context, func(recipes.Place)) (*grant, error) {
			<-granted
			return &grant{endsWithHost: ends, release: func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				released[id] = true
				return nil
			}}, nil
		})
	}
	now := make(chan struct{})
	close(now)
	ask("kept", false, now)
	ask("ends", true, now)
	var waiting sync.WaitGroup
	waiting.Go(func() { ask("late and kept", false, late) })
	waiting.Go(func() { ask("late", true, late) })
	for !ts.knows("late") || !ts.knows("late and kept") {
		runtime.Gosched()
	}
	ts.hostDied()
	close(late)
	waiting.Wait()
	ss.tasks.Wait()
	if want := map[string]bool{"ends": true, "late": true}; !maps.Equal(released, want) {
		t.Errorf("released: %v; want %v", released, want)
	}
}
