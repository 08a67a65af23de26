//go:build unix

package host_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// surviving is a session through a supervised plugin process over ZooKeeper, and another
// one of this process.
type surviving struct {
	*testing.T
	server     *zkserver.Server // nil: a real one
	servers    []string
	supervisor *host.Supervisor
	changes    <-chan host.Change
	session    recipes.Client // through the plugin
	rival      recipes.Client // without
	hold       sync.Mutex     // while it is held, no plugin is started again
}

// embedded is a ZooKeeper server in this process.
func embedded(t *testing.T) *zkserver.Server {
	t.Helper()
	server := must.Get(zkserver.Listen(zkserver.Config{MinSessionTimeout: time.Millisecond, MaxSessionTimeout: time.Hour}))(t)
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func survive(t *testing.T) *surviving {
	t.Helper()
	server := embedded(t)
	v := surviveAt(t, []string{server.Addr()})
	v.server = server
	return v
}

func surviveAt(t *testing.T, servers []string) *surviving {
	t.Helper()
	changes := make(chan host.Change, 1000)
	v := &surviving{T: t, servers: servers, changes: changes}
	s := must.Get(host.Supervise(ctx(t), host.SupervisorConfig{
		Plugin:     config(t, "real plugin"),
		MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond,
		Changed: func(c host.Change) {
			v.hold.Lock()
			defer v.hold.Unlock()
			changes <- c
		},
	}))(t)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	v.supervisor = s
	v.session, v.rival = v.open(s.Open), v.open(zookeeper.Open)
	t.Cleanup(func() { _ = v.rival.Close(context.Background()) })
	return v
}

func (v *surviving) open(open recipes.Opener) recipes.Client {
	v.Helper()
	return must.Get(open(ctx(v), recipes.SessionConfig{Servers: v.servers, SessionTimeout: longTimeout}))(v)
}

// holdsShortly has a session with a short timeout hold a lock.
func (v *surviving) holdsShortly(path string) (recipes.Client, recipes.Hold) {
	v.Helper()
	s := must.Get(v.supervisor.Open(ctx(v), recipes.SessionConfig{Servers: v.servers, SessionTimeout: shortTimeout}))(v)
	h := must.Get(lockAt(v.T, s, path).Acquire(ctx(v)))(v)
	return s, h
}

// kill kills the plugin, and returns when the next one has answered the session. A reader
// of events might miss so short a suspension, or meet one of the test's making.
func (v *surviving) kill() time.Duration {
	v.Helper()
	began := time.Now()
	killed := v.supervisor.Plugin().PID()
	signal(v.T, killed, syscall.SIGKILL)
	for next := false; !next; {
		p := v.supervisor.Plugin()
		next = p != nil && p.PID() != killed
		if _, err := v.session.Contenders(ctx(v), "/"); err != nil {
			v.Fatalf("asked of the next plugin: %v", err)
		}
	}
	return time.Since(began)
}

// ephemerals are the paths below one that live with a session, without the receipts that
// it keeps until it ends.
func ephemerals(s *zkserver.Server, below string) (paths []string) {
	for _, n := range s.Tree() {
		if n.Stat.EphemeralOwner != 0 && !strings.Contains(n.Path, "/receipts/") && len(n.Path) > len(below) && n.Path[:len(below)+1] == below+"/" {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// holding is something that a session can have.
type holding struct {
	name, path string
	get        func(context.Context, recipes.Client) (recipes.Grant, error)
	giveBack   func(context.Context, recipes.Grant) error
	rival      func(context.Context, recipes.Client) (recipes.Grant, error) // that fails meanwhile, without waiting; may be nil
}

// isTaken checks that another session is not granted it meanwhile.
func (h holding) isTaken(t *testing.T, rival recipes.Client) {
	t.Helper()
	if h.rival == nil {
		return
	}
	if _, err := h.rival(ctx(t), rival); !errors.Is(err, recipes.ErrContended) && !errors.Is(err, recipes.ErrNodeExists) && !errors.Is(err, recipes.ErrEmpty) {
		t.Errorf("%s: somebody else: %v", h.name, err)
	}
}

// prepare has another session put what a delivery needs.
func prepare(t *testing.T, s recipes.Recipes) {
	t.Helper()
	q, err := s.Queue("/queue", recipes.QueueConfig{})
	if err == nil {
		_, err = q.Put(ctx(t), []byte("one"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// use makes the change that a grant of some recipes allows, besides Write.
func use(ctx context.Context, g recipes.Grant) error {
	switch g := g.(type) {
	case recipes.Leadership:
		return g.Acknowledge(ctx, []byte("me"))
	case interface {
		Update(context.Context, []byte) error
	}:
		return g.Update(ctx, []byte("here"))
	}
	return nil
}

func release(ctx context.Context, g recipes.Grant) error { return g.(recipes.Hold).Release(ctx) }

// granted makes a recipes.Grant of any.
func granted[G recipes.Grant](g G, err error) (recipes.Grant, error) {
	if err != nil {
		return nil, err
	}
	return g, nil
}

var holdings = []holding{
	{"lock", "/lock", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		l, _ := s.Lock("/lock", recipes.LockConfig{})
		return granted(l.Acquire(ctx))
	}, release, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		l, _ := s.Lock("/lock", recipes.LockConfig{})
		return granted(l.TryAcquire(ctx))
	}},
	{"herd", "/herd", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		l, _ := s.Lock("/herd", recipes.LockConfig{Strategy: recipes.Herd})
		return granted(l.Acquire(ctx))
	}, release, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		l, _ := s.Lock("/herd", recipes.LockConfig{Strategy: recipes.Herd})
		return granted(l.TryAcquire(ctx))
	}},
	{"reader", "/reader", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		l, _ := s.SharedLock("/reader", recipes.SharedLockConfig{})
		return granted(l.AcquireRead(ctx))
	}, release, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		l, _ := s.SharedLock("/reader", recipes.SharedLockConfig{})
		return granted(l.TryWrite(ctx))
	}},
	{"writer", "/writer", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		l, _ := s.SharedLock("/writer", recipes.SharedLockConfig{Revocable: true})
		return granted(l.AcquireWrite(ctx))
	}, release, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		l, _ := s.SharedLock("/writer", recipes.SharedLockConfig{})
		return granted(l.TryRead(ctx))
	}},
	{"permit", "/permit", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		m, _ := s.Semaphore("/permit", recipes.SemaphoreConfig{Permits: 1})
		return granted(m.Acquire(ctx))
	}, release, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		m, _ := s.Semaphore("/permit", recipes.SemaphoreConfig{Permits: 1})
		return granted(m.TryAcquire(ctx))
	}},
	{"slot", "/slot", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		m, _ := s.Slots("/slot", recipes.SemaphoreConfig{Permits: 1})
		return granted(m.Acquire(ctx))
	}, release, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		m, _ := s.Slots("/slot", recipes.SemaphoreConfig{Permits: 1})
		return granted(m.TryAcquire(ctx))
	}},
	{"permit of Curator", "/leased/leases", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		m, _ := s.Semaphore("/leased", recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Curator})
		return granted(m.Acquire(ctx))
	}, release, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		m, _ := s.Semaphore("/leased", recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Curator})
		return granted(m.TryAcquire(ctx))
	}},
	{"priority", "/priority", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		l, _ := s.PriorityLock("/priority", recipes.PriorityLockConfig{Priority: 3})
		return granted(l.AcquireWrite(ctx))
	}, release, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		l, _ := s.PriorityLock("/priority", recipes.PriorityLockConfig{})
		return granted(l.TryWrite(ctx))
	}},
	{"leadership", "/leadership", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		e, _ := s.Election("/leadership", recipes.ElectionConfig{})
		return granted(e.Campaign(ctx, []byte("me")))
	}, func(ctx context.Context, g recipes.Grant) error { return g.(recipes.Leadership).Resign(ctx) }, nil},
	{"membership", "/group", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		g, _ := s.Group("/group", recipes.GroupConfig{Name: "me"})
		return granted(g.Join(ctx, nil))
	}, func(ctx context.Context, g recipes.Grant) error { return g.(recipes.Membership).Leave(ctx) }, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		g, _ := s.Group("/group", recipes.GroupConfig{Name: "me"})
		return granted(g.Join(ctx, nil))
	}},
	{"name", "/names", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		n, _ := s.Names("/names")
		return granted(n.Register(ctx, "me", nil))
	}, func(ctx context.Context, g recipes.Grant) error { return g.(recipes.Registration).Unregister(ctx) }, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		n, _ := s.Names("/names")
		return granted(n.Register(ctx, "me", nil))
	}},
	{"delivery", "/queue", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		q, _ := s.Queue("/queue", recipes.QueueConfig{})
		return granted(q.Receive(ctx))
	}, func(ctx context.Context, g recipes.Grant) error { return g.(recipes.Delivery).Ack(ctx) }, nil},
	{"passage", "/barrier", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		b, _ := s.DoubleBarrier("/barrier", recipes.DoubleBarrierConfig{Size: 1})
		return granted(b.Enter(ctx, nil))
	}, func(ctx context.Context, g recipes.Grant) error { return g.(recipes.Passage).Leave(ctx) }, nil},
}

// TestAWaiterKeepsItsPlaceWhenItsPluginDies: it is told its place once, waits behind the
// same contender, ahead of those that came after it, and is granted in its turn.
func TestAWaiterKeepsItsPlaceWhenItsPluginDies(t *testing.T) {
	for name, acquire := range map[string]func(context.Context, recipes.Client, string, func(recipes.Place)) (recipes.Hold, error){
		"lock": func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Hold, error) {
			l, _ := s.Lock(path, recipes.LockConfig{Joined: joined})
			return l.Acquire(ctx)
		},
		"predecessor": func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Hold, error) {
			l, _ := s.Lock(path, recipes.LockConfig{Joined: joined, Strategy: recipes.Predecessor})
			return l.Acquire(ctx)
		},
		"herd": func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Hold, error) {
			l, _ := s.Lock(path, recipes.LockConfig{Joined: joined, Strategy: recipes.Herd})
			return l.Acquire(ctx)
		},
		"curator": func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Hold, error) {
			l, _ := s.Lock(path, recipes.LockConfig{Joined: joined, Dialect: recipes.Curator})
			return l.Acquire(ctx)
		},
		"kazoo": func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Hold, error) {
			l, _ := s.Lock(path, recipes.LockConfig{Joined: joined, Dialect: recipes.Kazoo})
			return l.Acquire(ctx)
		},
		"writer": func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Hold, error) {
			l, _ := s.SharedLock(path, recipes.SharedLockConfig{Joined: joined})
			return l.AcquireWrite(ctx)
		},
		"permit": func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Hold, error) {
			m, _ := s.Semaphore(path, recipes.SemaphoreConfig{Permits: 1, Joined: joined})
			return m.Acquire(ctx)
		},
		"slot": func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Hold, error) {
			m, _ := s.Slots(path, recipes.SemaphoreConfig{Permits: 1, Joined: joined})
			return m.Acquire(ctx)
		},
		"priority": func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Hold, error) {
			l, _ := s.PriorityLock(path, recipes.PriorityLockConfig{Joined: joined, Priority: 1})
			return l.AcquireWrite(ctx)
		},
		"election": func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Hold, error) {
			e, _ := s.Election(path, recipes.ElectionConfig{Joined: joined})
			l, err := e.Campaign(ctx, nil)
			return resigning{l}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := survive(t)
			first := must.Get(acquire(ctx(t), v.rival, "/awaited", nil))(t)
			type turn struct {
				hold recipes.Hold
				err  error
			}
			stand := func(s recipes.Client) (places chan recipes.Place, granted chan turn) {
				places, granted = make(chan recipes.Place, 9), make(chan turn, 1)
				go func() {
					h, err := acquire(ctx(t), s, "/awaited", func(p recipes.Place) { places <- p })
					granted <- turn{h, err}
				}()
				select {
				case p := <-places:
					places <- p
				case early := <-granted:
					t.Fatalf("granted: %+v", early)
				}
				return places, granted
			}
			told, ours := stand(v.session)
			_, silent := stand(v.session) // whose application does not look
			_, theirs := stand(v.rival)
			before := ephemerals(v.server, "/awaited")
			for range 3 {
				v.kill()
				if after := ephemerals(v.server, "/awaited"); !slices.Equal(before, after) {
					t.Fatalf("in line %q, then %q", before, after)
				}
			}
			if len(told) != 1 {
				t.Errorf("told %d places", len(told))
			}
			must.Do(t, first.Release(ctx(t)))
			last := first.Token()
			for i, granted := range []chan turn{ours, silent, theirs} {
				now := <-granted
				if now.err != nil {
					t.Fatalf("contender %d: %v", i, now.err)
				}
				if now.hold.Token() <= last {
					t.Errorf("contender %d: token %d after %d", i, now.hold.Token(), last)
				}
				last = now.hold.Token()
				for _, later := range []chan turn{ours, silent, theirs}[i+1:] {
					if len(later) > 0 {
						t.Errorf("granted beside contender %d: %+v", i, <-later)
					}
				}
				must.Report(t, now.hold.Release(ctx(t)))
			}
		})
	}
}

// resigning is a leadership that is given back like a lock.
type resigning struct{ recipes.Leadership }

func (r resigning) Release(ctx context.Context) error { return r.Resign(ctx) }

// TestASlotKeepsItsNumber: a number that is not the first is granted to a waiter after its plugin
// has died, and stays when the next one dies.
func TestASlotKeepsItsNumber(t *testing.T) {
	v := survive(t)
	slots := func(s recipes.Client, joined func(recipes.Place)) recipes.Slots {
		return must.Get(s.Slots("/slots", recipes.SemaphoreConfig{Permits: 2, Joined: joined}))(t)
	}
	must.Get(slots(v.rival, nil).Acquire(ctx(t)))(t)
	second := must.Get(slots(v.rival, nil).Acquire(ctx(t)))(t)
	joined, granted := make(chan struct{}), make(chan recipes.SlotHold, 1)
	go func() {
		h, err := slots(v.session, func(recipes.Place) { close(joined) }).Acquire(ctx(t))
		must.Report(t, err)
		granted <- h
	}()
	closes(t, "joined", joined)
	v.kill()
	must.Do(t, second.Release(ctx(t)))
	h := <-granted
	v.kill()
	must.Do(t, h.Write(ctx(t)))
	if h.Slot() != 1 || !strings.Contains(h.Znode(), "-slot-1-") {
		t.Errorf("number %d of %s; want 1", h.Slot(), h.Znode())
	}
}
