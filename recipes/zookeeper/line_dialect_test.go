package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// These are the names that other libraries give their contenders, without the sequence number.
// Package interop tests with the libraries themselves.
var (
	kazooLock    = strings.ReplaceAll(uuid.NewString(), "-", "") + "__lock__"
	kazooRead    = strings.ReplaceAll(uuid.NewString(), "-", "") + "__rlock__"
	curatorMutex = "_c_" + uuid.NewString() + "-lock-"
	curatorRead  = "_c_" + uuid.NewString() + "-__READ__"
	curatorWrite = "_c_" + uuid.NewString() + "-__WRIT__"
	curatorLatch = "_c_" + uuid.NewString() + "-latch-"
)

// A third-party contender joins behind waiters. When the first waiter's turn comes, the waiters
// that list the wait queue find it. By handoff the first one is granted, and finds it while it
// holds. The waiters behind find it when that hold ends.
func TestAThirdPartyThatComesLaterIsFound(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		t.Run(string(strategy), func(t *testing.T) {
			zktest.OnBoth(t, func(s *zktest.Scene) {
				first := must.Get(s.Session().Lock(s.Path, recipes.LockConfig{Strategy: strategy}))(s.T)
				hold := must.Get(first.Acquire(s.Ctx))(s.T)
				const waiting = 3
				failed := make(chan error, waiting)
				for range waiting {
					_, granted := wayTo("lock", "").by(strategy).start(s.Ctx, s.Session(), s.Path)
					go func() {
						next := <-granted
						if next.Err == nil && strategy == recipes.Handoff {
							next.Err = s.Lost(next.Got.(recipes.Hold))
						}
						failed <- next.Err
					}()
				}
				theirs := s.Contender(kazooLock)
				releaseBeside(s, hold)
				for range waiting {
					if err := <-failed; !errors.Is(err, recipes.ErrForeign) {
						s.Fatalf("got %v, want ErrForeign", err)
					}
				}
				s.Alone(theirs)
			})
		})
	}
}

// failure drops the result of a call, and keeps its error.
func failure[T any](_ T, err error) error { return err }

func TestWhatADialectDoesNotOffer(t *testing.T) {
	s, ctx := zktest.Open(t, zktest.Embedded(t)), zktest.Bounded(t)
	latin := []byte{0xff}
	must.Report(t, failure(s.Lock("/l", recipes.LockConfig{Data: latin})))
	e := must.Get(s.Election("/e", recipes.ElectionConfig{Dialect: recipes.Kazoo}))(t)
	leader := must.Get(e.Campaign(ctx, []byte("me")))(t)
	for i, err := range []error{
		failure(s.SharedLock("/l", recipes.SharedLockConfig{Dialect: recipes.Kazoo, Data: latin})),
		failure(s.Semaphore("/l", recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Kazoo, Data: latin})),
		failure(s.Semaphore("/l", recipes.SemaphoreConfig{Dialect: recipes.Curator})), // without permits
		failure(s.SharedLock("/l", recipes.SharedLockConfig{Dialect: recipes.Curator, Revocable: true})),
		failure(s.PriorityQueue("/q", recipes.QueueConfig{Dialect: recipes.Curator})),
		failure(s.Queue("/q", recipes.QueueConfig{Dialect: recipes.Curator, Capacity: 1})),
		failure(s.Queue("/q", recipes.QueueConfig{Dialect: recipes.Kazoo, MaxDeliveries: 1})),
		failure(s.Group("/g", recipes.GroupConfig{Dialect: recipes.Kazoo, Name: "me"})),
		leader.Acknowledge(ctx, nil),
	} {
		if !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("%d: got %v, want ErrInvalid", i, err)
		}
	}
	if got := must.Get(e.Leader(ctx))(t); got.Znode != leader.Znode() || !got.Holds || got.Dialect != recipes.Kazoo {
		t.Errorf("the leader is %+v", got)
	}
}

// A refused contender returns only after its znode is deleted. Otherwise its next attempt would
// have the last sequence number, which the waiter ahead checks.
func TestAContenderThatMeetsAThirdPartyHasLeft(t *testing.T) {
	for _, strategy := range []recipes.Strategy{recipes.Handoff, recipes.Predecessor} {
		zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, kazoo recipes.Client) {
			theirs := must.Get(must.Get(kazoo.Lock("/l", recipes.LockConfig{Dialect: recipes.Kazoo}))(t).Acquire(ctx))(t)
			ours := zktest.OpenVirtual(t, srv)
			leave := make(chan struct{})
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				if r.SessionID == ours.ID() && r.Op == zkserver.OpDelete {
					return zkserver.Fault{Hold: leave}
				}
				return zkserver.Fault{}
			})
			returned := zktest.Go(ctx, must.Get(ours.Lock("/l", recipes.LockConfig{Strategy: strategy}))(t).Acquire)
			synctest.Wait()
			select {
			case e := <-returned:
				t.Errorf("%s: returned %v before it had left", strategy, e.Err)
			default:
			}
			close(leave)
			if err := (<-returned).Err; !errors.Is(err, recipes.ErrForeign) {
				t.Errorf("%s: %v", strategy, err)
			}
			must.Report(t, theirs.Release(ctx))
		})
	}
}

// A contender that has left from the end of the wait queue costs the others no listing.
func TestAContenderThatHasLeftCostsNoListing(t *testing.T) {
	addr := zktest.Embedded(t).Addr()
	ctx, waiters := zktest.Bounded(t), zktest.OpenAt(t, addr)
	w := wayTo("lock", "")
	hold := must.Get(w.at(t, zktest.OpenAt(t, addr), "/lock").Get(ctx))(t)
	const waiting = 20
	var turns []<-chan zktest.Outcome[recipes.Grant]
	for range waiting {
		_, turn := w.start(ctx, waiters, "/lock")
		turns = append(turns, turn)
	}
	if _, err := w.try(ctx, zktest.OpenAt(t, addr), "/lock"); !errors.Is(err, recipes.ErrContended) {
		t.Fatal(err)
	}
	before := must.Get(waiters.Stats(ctx))(t).Fallbacks // an inspection may list without one
	must.Do(t, w.GiveBack(ctx, hold))
	for _, turn := range turns {
		next := <-turn
		must.Do(t, next.Err)
		must.Do(t, w.GiveBack(ctx, next.Got))
	}
	if listings := must.Get(waiters.Stats(ctx))(t).Fallbacks - before; listings != 0 {
		t.Errorf("%d listings in %d handoffs", listings, waiting)
	}
}

// kazoo's contenders check only once that their path exists, and fail with NoNodeError if it is
// gone later. A container is deleted as soon as it is empty. So the path must be persistent.
func TestThePathOfKazoosContendersStays(t *testing.T) {
	in := func(name string) func(ctx context.Context, s recipes.Client, path string) error {
		return wayTo(name, recipes.Kazoo).turn
	}
	for name, use := range map[string]func(ctx context.Context, s recipes.Client, path string) error{
		"lock":      in("lock"),
		"reader":    in("shared lock for reading"),
		"election":  in("election"),
		"semaphore": in("semaphore"),
		"group": func(ctx context.Context, s recipes.Client, path string) error {
			m, err := must.Get(s.Group(path, recipes.GroupConfig{Dialect: recipes.Kazoo}))(t).Join(ctx, nil)
			if err != nil {
				return err
			}
			return m.Leave(ctx)
		},
		"queue": func(ctx context.Context, s recipes.Client, path string) error {
			q := zktest.QueueOf(t, s, path, recipes.QueueConfig{Dialect: recipes.Kazoo})
			return errors.Join(failure(q.Put(ctx, nil)), failure(q.Take(ctx)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
				must.Do(t, use(s.Ctx, s.Session(), s.Path))
				srv.RunContainerCheck()
				if ok, _, err := s.Raw.Exists(s.Path); err != nil || !ok {
					t.Errorf("the path is gone (%v)", err)
				}
				if ok, _, err := s.Raw.Exists(s.Path + "-__lock__"); name == "semaphore" && (err != nil || !ok) {
					t.Errorf("the path of its lock is gone (%v)", err)
				}
			})
		})
	}
}

// releaseBeside releases a hold beside a third party, and reports whether an inspection of the path
// had found it and ended the hold before.
func releaseBeside(s *zktest.Scene, hold recipes.Grant) (found bool) {
	err := hold.(recipes.Hold).Release(s.Ctx)
	if found = errors.Is(err, recipes.ErrForeign); err != nil && !found {
		s.Fatal(err)
	}
	return found
}

// A contender of ours that joins behind a third-party contender fails and leaves. The waiter
// ahead is handed the lock, and finds the third-party contender while it holds.
func TestAThirdPartyInTheMiddleIsFound(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		hold := s.Hold(s.Join())
		waiter := s.Join()
		theirs := s.Contender(kazooLock)
		for range 2 {
			if _, err := wayTo("lock", "").enter(s.Ctx, s.Session(), s.Path, nil); !errors.Is(err, recipes.ErrForeign) {
				s.Fatalf("joining behind it: %v", err)
			}
		}
		if releaseBeside(s, hold) { // on a slow machine; it is no handoff, so the waiter lists
			s.Is(s.Failure(waiter), recipes.ErrForeign)
		} else if err := s.Lost(s.Hold(waiter)); !errors.Is(err, recipes.ErrForeign) || !errors.Is(err, recipes.ErrNotHeld) {
			s.Fatalf("got %v, want ErrForeign", err)
		}
		s.Alone(theirs)
	})
}

// With handoff, a gap in the sequence numbers shows that there may be a third-party contender.
// A contender that joins behind it lists the wait queue. The contenders behind that one get no
// handoff, and list too.
func TestByHandoffNoneIsGrantedBehindAThirdParty(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		hold := s.Hold(s.Join())
		theirs := s.Contender(kazooLock)
		for range 3 {
			_, err := wayTo("lock", "").enter(s.Ctx, s.Session(), s.Path, nil)
			if !errors.Is(err, recipes.ErrForeign) {
				s.Fatalf("got %v, want ErrForeign", err)
			}
		}
		releaseBeside(s, hold)
		s.Alone(theirs)
	})
}
