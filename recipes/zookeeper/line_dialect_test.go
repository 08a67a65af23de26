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
// Package recipestest tests with the libraries themselves.
var (
	kazooLock    = strings.ReplaceAll(uuid.NewString(), "-", "") + "__lock__"
	kazooRead    = strings.ReplaceAll(uuid.NewString(), "-", "") + "__rlock__"
	curatorMutex = "_c_" + uuid.NewString() + "-lock-"
	curatorRead  = "_c_" + uuid.NewString() + "-__READ__"
	curatorWrite = "_c_" + uuid.NewString() + "-__WRIT__"
	curatorLatch = "_c_" + uuid.NewString() + "-latch-"
	textElection = "_c_" + uuid.NewString() + "-n_"
)

// A contender of another library ignores ours. So ours checks when it joins. It fails with an
// error that names the other one, and leaves.
func TestAThirdPartyIsSeenAtJoining(t *testing.T) {
	for _, foreign := range []struct {
		name    string
		dialect recipes.Dialect
		recipe  string
	}{
		{kazooLock, recipes.Kazoo, "Lock"},
		{kazooRead, recipes.Kazoo, "ReadLock"},
		{curatorRead, recipes.Curator, "InterProcessReadWriteLock"},
		{curatorWrite, recipes.Curator, "InterProcessReadWriteLock"},
		{curatorLatch, recipes.Curator, "LeaderLatch"},
	} {
		for _, w := range ways(operated) {
			if w.options.dialect != "" {
				continue
			}
			t.Run(w.name+" and "+foreign.recipe, func(t *testing.T) {
				zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
					theirs := s.Contender(foreign.name)
					enter := func(ctx context.Context, s recipes.Client, path string) (recipes.Grant, error) {
						return w.enter(ctx, s, path, nil)
					}
					for _, get := range []func(context.Context, recipes.Client, string) (recipes.Grant, error){enter, w.try} {
						_, err := get(s.Ctx, zktest.OpenAt(s.T, s.Addr), s.Path)
						want := recipes.ForeignError{Dialect: foreign.dialect, Recipe: foreign.recipe, Znode: theirs}
						var got *recipes.ForeignError
						if !errors.Is(err, recipes.ErrForeign) || !errors.As(err, &got) || *got != want {
							t.Fatalf("got %v, want %v", err, &want)
						}
						s.Alone(theirs)
					}
				})
			})
		}
	}
}

// In a dialect, a contender shares the wait queue with the library's contenders, and waits only
// for those ahead.
func TestADialectWaitsInTheQueueOfItsLibrary(t *testing.T) {
	for _, tt := range []struct {
		name    string
		dialect recipes.Dialect
		theirs  string
		way     string
		marker  string // of ours
	}{
		{"lock", recipes.Kazoo, kazooLock, "lock", "__lock__"},
		{"lock", recipes.Curator, curatorMutex, "lock", "_c_"},
		{"lock", recipes.ZooKeeper, curatorMutex, "lock", "/lock-"},
		{"reader", recipes.Kazoo, kazooLock, "shared lock for reading", "__rlock__"},
		{"writer", recipes.Kazoo, kazooLock, "shared lock for writing", "__lock__"},
		{"writer behind a reader", recipes.Kazoo, kazooRead, "shared lock for writing", "__lock__"},
		{"reader", recipes.Curator, curatorWrite, "shared lock for reading", "-__READ__"},
		{"writer", recipes.Curator, curatorWrite, "shared lock for writing", "-__WRIT__"},
		{"writer behind a reader", recipes.Curator, curatorRead, "shared lock for writing", "-__WRIT__"},
		{"election", recipes.Kazoo, kazooLock, "election", "__lock__"},
		{"election", recipes.Curator, curatorLatch, "election", "-latch-"},
	} {
		t.Run(string(tt.dialect)+" "+tt.name, func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
				theirs := s.Contender(tt.theirs)
				session, w := zktest.OpenAt(s.T, s.Addr), wayTo(tt.way, tt.dialect)
				if w.tries != "" {
					if _, err := w.try(s.Ctx, session, s.Path); !errors.Is(err, recipes.ErrContended) {
						t.Fatalf("got %v, want ErrContended", err)
					}
				}
				granted := make(chan recipes.Grant, 1)
				go func() {
					g, err := w.enter(s.Ctx, session, s.Path, nil)
					if err != nil {
						t.Error(err)
					}
					granted <- g
				}()
				watches := 1 // the other library's contender sets none
				if tt.dialect == recipes.ZooKeeper {
					watches = 3 // by handoff, also on its own znode and the path
				}
				zktest.AwaitWatches(s.Ctx, t, srv, watches)
				select {
				case <-granted:
					t.Fatal("granted beside the other library's contender")
				default:
				}
				must.Do(t, s.Raw.Delete(theirs, -1))
				if g := <-granted; g != nil && !strings.Contains(g.Znode(), tt.marker) {
					t.Errorf("our contender is %s; want a name with %s", g.Znode(), tt.marker)
				}
			})
		})
	}
}

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
					joined := make(chan struct{})
					waiter := must.Get(s.Session().Lock(s.Path, recipes.LockConfig{Strategy: strategy, Joined: func(recipes.Place) { close(joined) }}))(s.T)
					go func() {
						next, err := waiter.Acquire(s.Ctx)
						if err == nil && strategy == recipes.Handoff {
							err = s.Lost(next)
						}
						failed <- err
					}()
					<-joined
				}
				theirs := s.Contender(kazooLock)
				must.Do(s, hold.Release(s.Ctx))
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
		s.Release(hold)
		if err := s.Lost(s.Hold(waiter)); !errors.Is(err, recipes.ErrForeign) || !errors.Is(err, recipes.ErrNotHeld) {
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
		s.Release(hold)
		s.Alone(theirs)
	})
}

// A wait queue in a dialect cannot share its path with another recipe: the library's contenders
// of other recipes ignore ours.
func TestALineInADialectIsAloneAtItsPath(t *testing.T) {
	for _, tt := range []struct {
		dialect recipes.Dialect
		way     string
		other   string
	}{
		{recipes.Kazoo, "lock", curatorMutex},
		{recipes.Kazoo, "lock", kazooRead},
		{recipes.Kazoo, "election", textElection},
		{recipes.Curator, "election", textElection},
		{recipes.Curator, "election", curatorMutex}, // LeaderSelector has such contenders
		{recipes.Curator, "lock", curatorLatch},
		{recipes.Curator, "shared lock for reading", kazooRead},
	} {
		zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
			theirs := s.Contender(tt.other)
			if _, err := wayTo(tt.way, tt.dialect).enter(s.Ctx, zktest.OpenAt(s.T, s.Addr), s.Path, nil); !errors.Is(err, recipes.ErrForeign) {
				t.Errorf("%s beside %s: %v", tt.dialect, tt.other, err)
			}
			s.Alone(theirs)
		})
	}
}

func TestWhatADialectDoesNotOffer(t *testing.T) {
	s, ctx := zktest.Open(t, zktest.Embedded(t)), zktest.Bounded(t)
	invalid := func(err error) {
		t.Helper()
		if !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("got %v, want ErrInvalid", err)
		}
	}
	_, err := s.Lock("/l", recipes.LockConfig{Dialect: "klingon"})
	invalid(err)
	_, err = s.Lock("/l", recipes.LockConfig{Dialect: recipes.Kazoo, Data: []byte{0xff}})
	invalid(err)
	_, err = s.SharedLock("/l", recipes.SharedLockConfig{Dialect: recipes.Kazoo, Data: []byte{0xff}})
	invalid(err)
	_, err = s.Semaphore("/l", recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Kazoo, Data: []byte{0xff}})
	invalid(err)
	if _, err = s.Lock("/l", recipes.LockConfig{Data: []byte{0xff}}); err != nil {
		t.Error(err)
	}
	for _, d := range []recipes.Dialect{recipes.ZooKeeper, recipes.Curator} {
		_, err = s.Semaphore("/l", recipes.SemaphoreConfig{Dialect: d}) // without permits
		invalid(err)
	}
	_, err = s.SharedLock("/l", recipes.SharedLockConfig{Dialect: recipes.Curator, Revocable: true})
	invalid(err)
	e := must.Get(s.Election("/e", recipes.ElectionConfig{Dialect: recipes.Kazoo}))(t)
	_, err = e.Campaign(ctx, []byte{0xff})
	invalid(err)
	leader := must.Get(e.Campaign(ctx, []byte("me")))(t)
	invalid(leader.Acknowledge(ctx, nil))
	if got := must.Get(e.Leader(ctx))(t); got.Znode != leader.Znode() || got.Dialect != recipes.Kazoo {
		t.Errorf("the leader is %+v", got)
	}
}

// The contenders of other libraries are listed with their dialect. A recipe lists only the
// contenders of its own dialect.
func TestContendersHaveTheirDialect(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		for _, name := range []string{kazooLock, curatorMutex, curatorRead, curatorWrite, curatorLatch, textElection} {
			s.Contender(name)
		}
		session := zktest.OpenAt(s.T, s.Addr)
		all := must.Get(session.Contenders(s.Ctx, s.Path))(s.T)
		var got []string
		for _, c := range all.Contenders {
			got = append(got, string(c.Kind)+" "+string(c.Mode)+" "+string(c.Dialect))
		}
		want := "lock  zookeeper, lock  kazoo, shared-lock read curator, shared-lock write curator, election  zookeeper, election  curator"
		if strings.Join(got, ", ") != want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
		}
		l := must.Get(session.Lock(s.Path, recipes.LockConfig{Dialect: recipes.Kazoo}))(s.T)
		if line := must.Get(l.Contenders(s.Ctx))(s.T); len(line) != 1 || line[0].Dialect != recipes.Kazoo || !line[0].Holds {
			t.Errorf("kazoo's line is %+v", line)
		}
	})
}

// The consumers of other libraries' queues ignore our elements, or take znodes that are no
// elements. So a consumer of ours refuses such a queue.
func TestAQueueOfAnotherLibraryIsRefused(t *testing.T) {
	for name, want := range map[string]recipes.ForeignError{
		"qn-":        {Dialect: recipes.Curator, Recipe: "SimpleDistributedQueue"},
		"entry-100-": {Dialect: recipes.Kazoo, Recipe: "Queue"},
	} {
		zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
			want.Znode = s.Contender(name)
			session := zktest.OpenAt(s.T, s.Addr)
			q := must.Get(session.Queue(s.Path, recipes.QueueConfig{}))(t)
			p := must.Get(session.PriorityQueue(s.Path, recipes.QueueConfig{}))(t)
			for what, take := range map[string]func() error{
				"take":          func() error { _, err := q.Take(s.Ctx); return err },
				"priority take": func() error { _, err := p.Take(s.Ctx); return err },
			} {
				var got *recipes.ForeignError
				if err := take(); !errors.As(err, &got) || *got != want {
					t.Errorf("%s beside %s: %v", what, name, err)
				}
			}
		})
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
			returned := make(chan error, 1)
			go func() {
				_, err := must.Get(ours.Lock("/l", recipes.LockConfig{Strategy: strategy}))(t).Acquire(ctx)
				returned <- err
			}()
			synctest.Wait()
			select {
			case err := <-returned:
				t.Errorf("%s: returned %v before it had left", strategy, err)
			default:
			}
			close(leave)
			if err := <-returned; !errors.Is(err, recipes.ErrForeign) {
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
	lock := func(s recipes.Client, joined func(recipes.Place)) recipes.Lock {
		return must.Get(s.Lock("/lock", recipes.LockConfig{Joined: joined}))(t)
	}
	hold := must.Get(lock(zktest.OpenAt(t, addr), nil).Acquire(ctx))(t)
	const waiting = 20
	done := make(chan error, waiting)
	for range waiting {
		joined := make(chan struct{})
		l := lock(waiters, func(recipes.Place) { close(joined) })
		go func() {
			h, err := l.Acquire(ctx)
			if err == nil {
				err = h.Release(ctx)
			}
			done <- err
		}()
		<-joined
	}
	if _, err := lock(zktest.OpenAt(t, addr), nil).TryAcquire(ctx); !errors.Is(err, recipes.ErrContended) {
		t.Fatal(err)
	}
	before := must.Get(waiters.Stats(ctx))(t).ByKind["getChildren2"]
	must.Do(t, hold.Release(ctx))
	for range waiting {
		must.Do(t, <-done)
	}
	if listings := must.Get(waiters.Stats(ctx))(t).ByKind["getChildren2"] - before; listings != 0 {
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
			g, err := s.Group(path, recipes.GroupConfig{Dialect: recipes.Kazoo})
			if err != nil {
				return err
			}
			m, err := g.Join(ctx, nil)
			if err != nil {
				return err
			}
			return m.Leave(ctx)
		},
		"queue": func(ctx context.Context, s recipes.Client, path string) error {
			q, err := s.Queue(path, recipes.QueueConfig{Dialect: recipes.Kazoo})
			if err != nil {
				return err
			}
			if _, err := q.Put(ctx, nil); err != nil {
				return err
			}
			_, err = q.Take(ctx)
			return err
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
