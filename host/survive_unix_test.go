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

// surviving has a session through a supervised plugin process, and a session of this process.
type surviving struct {
	*testing.T
	server     *zkserver.Server // nil: a real server
	servers    []string
	sasl       *recipes.SASL // of both sessions
	supervisor *host.Supervisor
	changes    <-chan host.Change
	session    recipes.Client // through the plugin
	rival      recipes.Client // without a plugin
	hold       *sync.Mutex    // blocks restarts while it is held
}

// in returns v for a subtest.
func (v *surviving) in(t *testing.T) *surviving {
	sub := *v
	sub.T = t
	return &sub
}

// embedded starts an in-process server.
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
	return surviveWith(t, servers, nil)
}

func surviveWith(t *testing.T, servers []string, sasl *recipes.SASL) *surviving {
	t.Helper()
	changes := make(chan host.Change, 1000)
	v := &surviving{T: t, servers: servers, sasl: sasl, changes: changes, hold: new(sync.Mutex)}
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
	return must.Get(open(ctx(v), recipes.SessionConfig{Servers: v.servers, SASL: v.sasl, SessionTimeout: longTimeout}))(v)
}

// holds acquires the lock at a path in the plugin's session.
func (v *surviving) holds(path string) recipes.Hold {
	v.Helper()
	return must.Get(lockAt(v.T, v.session, path).Acquire(ctx(v)))(v)
}

// holdsShortly opens a session with a short timeout through the plugin. It holds the lock at a
// path, and the rival waits for the lock. lostFirst checks that the hold is lost before the
// rival is granted.
func (v *surviving) holdsShortly(path string) (s recipes.Client, lostFirst func()) {
	v.Helper()
	s = must.Get(v.supervisor.Open(ctx(v), recipes.SessionConfig{Servers: v.servers, SessionTimeout: shortTimeout}))(v)
	h := must.Get(lockAt(v.T, s, path).Acquire(ctx(v)))(v)
	lost, granted := make(chan time.Time, 1), make(chan time.Time, 1)
	go func() { <-h.Done(); lost <- time.Now() }()
	go func() {
		_, err := lockAt(v.T, v.rival, path).Acquire(ctx(v))
		must.Report(v, err)
		granted <- time.Now()
	}()
	return s, func() {
		v.Helper()
		if a, b := <-lost, <-granted; !a.Before(b) {
			v.Errorf("lost %v after the rival was granted", a.Sub(b))
		}
	}
}

// kill kills the plugin, and returns when the next one has answered a call of the session. The
// session's events do not show that: a reader can miss so short a suspension, or get one that
// the test has caused.
func (v *surviving) kill() time.Duration {
	v.Helper()
	began := time.Now()
	killed := v.supervisor.Plugin().PID()
	signal(v.T, killed, syscall.SIGKILL)
	for next := false; !next; {
		p := v.supervisor.Plugin()
		next = p != nil && p.PID() != killed
		if _, err := v.session.Contenders(ctx(v), "/"); err != nil {
			v.Fatalf("a call to the next plugin: %v", err)
		}
	}
	return time.Since(began)
}

// ephemerals returns the ephemeral znodes below a path, without receipts, which a session
// keeps until it ends.
func ephemerals(s *zkserver.Server, below string) (paths []string) {
	for _, n := range s.Tree() {
		if n.Stat.EphemeralOwner != 0 && !strings.Contains(n.Path, "/receipts/") && len(n.Path) > len(below) && n.Path[:len(below)+1] == below+"/" {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// nothingLeft checks that no ephemeral znode is left below a path.
func (v *surviving) nothingLeft(below string) {
	v.Helper()
	if left := ephemerals(v.server, below); len(left) > 0 {
		v.Errorf("left: %q", left)
	}
}

// getter acquires a grant in a session.
type getter = func(context.Context, recipes.Client) (recipes.Grant, error)

// holding is a kind of grant.
type holding struct {
	name, path string
	get        getter
	giveBack   func(context.Context, recipes.Grant) error
	rival      getter // fails without waiting while another session has the grant; may be nil
}

// isTaken checks that the rival is not granted it.
func (h holding) isTaken(t *testing.T, rival recipes.Client) {
	t.Helper()
	if h.rival == nil {
		return
	}
	if _, err := h.rival(ctx(t), rival); !errors.Is(err, recipes.ErrContended) && !errors.Is(err, recipes.ErrNodeExists) {
		t.Errorf("%s: the rival: %v", h.name, err)
	}
}

// holdsAll acquires each kind of grant in the plugin's session.
func (v *surviving) holdsAll() (held []recipes.Grant) {
	v.Helper()
	prepare(v.T, v.rival)
	for _, h := range holdings {
		held = append(held, must.Get(h.get(ctx(v), v.session))(v))
	}
	return held
}

// prepare puts an element into the queue, for a delivery.
func prepare(t *testing.T, s recipes.Recipes) {
	t.Helper()
	q := must.Get(s.Queue("/queue", recipes.QueueConfig{}))(t)
	must.Get(q.Put(ctx(t), []byte("one")))(t)
}

// use makes the change that the grants of some recipes offer besides Write.
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

// granted converts a grant to recipes.Grant.
func granted[G recipes.Grant](g G, err error) (recipes.Grant, error) {
	if err != nil {
		return nil, err
	}
	return g, nil
}

// lockHolding is a hold of the lock at a path.
func lockHolding(name, path string, cfg recipes.LockConfig) holding {
	return holding{name, path, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		l, _ := s.Lock(path, cfg)
		return granted(l.Acquire(ctx))
	}, release, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		l, _ := s.Lock(path, cfg)
		return granted(l.TryAcquire(ctx))
	}}
}

// permitHolding is a permit of the semaphore at path. below is the parent of the znodes of its
// contenders.
func permitHolding(name, path, below string, dialect recipes.Dialect) holding {
	cfg := recipes.SemaphoreConfig{Permits: 1, Dialect: dialect}
	return holding{name, below, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		m, _ := s.Semaphore(path, cfg)
		return granted(m.Acquire(ctx))
	}, release, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		m, _ := s.Semaphore(path, cfg)
		return granted(m.TryAcquire(ctx))
	}}
}

// onceHolding is a grant that the rival requests with the same call.
func onceHolding(name, path string, get getter, giveBack func(context.Context, recipes.Grant) error) holding {
	return holding{name, path, get, giveBack, get}
}

var holdings = []holding{
	lockHolding("lock", "/lock", recipes.LockConfig{}),
	lockHolding("herd", "/herd", recipes.LockConfig{Strategy: recipes.Herd}),
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
	permitHolding("permit", "/permit", "/permit", ""),
	permitHolding("permit of Curator", "/leased", "/leased/leases", recipes.Curator),
	{"slot", "/slot", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		m, _ := s.Slots("/slot", recipes.SemaphoreConfig{Permits: 1})
		return granted(m.Acquire(ctx))
	}, release, func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		m, _ := s.Slots("/slot", recipes.SemaphoreConfig{Permits: 1})
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
	onceHolding("membership", "/group", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		g, _ := s.Group("/group", recipes.GroupConfig{Name: "me"})
		return granted(g.Join(ctx, nil))
	}, func(ctx context.Context, g recipes.Grant) error { return g.(recipes.Membership).Leave(ctx) }),
	onceHolding("name", "/names", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		n, _ := s.Names("/names")
		return granted(n.Register(ctx, "me", nil))
	}, func(ctx context.Context, g recipes.Grant) error { return g.(recipes.Registration).Unregister(ctx) }),
	{"delivery", "/queue", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		q, _ := s.Queue("/queue", recipes.QueueConfig{})
		return granted(q.Receive(ctx))
	}, func(ctx context.Context, g recipes.Grant) error { return g.(recipes.Delivery).Ack(ctx) }, nil},
	{"passage", "/barrier", func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
		b, _ := s.DoubleBarrier("/barrier", recipes.DoubleBarrierConfig{Size: 1})
		return granted(b.Enter(ctx, nil))
	}, func(ctx context.Context, g recipes.Grant) error { return g.(recipes.Passage).Leave(ctx) }, nil},
}

// waiter acquires a hold in a session, and reports its place.
type waiter = func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Hold, error)

// lockWaiter is a waiter for a lock.
func lockWaiter(cfg recipes.LockConfig) waiter {
	return func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Hold, error) {
		cfg := cfg
		cfg.Joined = joined
		l, _ := s.Lock(path, cfg)
		return l.Acquire(ctx)
	}
}

// TestAWaiterKeepsItsPlaceWhenItsPluginDies: Joined is called once. The waiter keeps its znode
// behind the same contender, ahead of later ones, and is granted in its turn.
func TestAWaiterKeepsItsPlaceWhenItsPluginDies(t *testing.T) {
	t.Parallel()
	v := survive(t)
	for name, acquire := range map[string]waiter{
		"lock":        lockWaiter(recipes.LockConfig{}),
		"predecessor": lockWaiter(recipes.LockConfig{Strategy: recipes.Predecessor}),
		"herd":        lockWaiter(recipes.LockConfig{Strategy: recipes.Herd}),
		"curator":     lockWaiter(recipes.LockConfig{Dialect: recipes.Curator}),
		"kazoo":       lockWaiter(recipes.LockConfig{Dialect: recipes.Kazoo}),
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
			v, path := v.in(t), "/awaited-"+name
			first := must.Get(acquire(ctx(t), v.rival, path, nil))(t)
			type turn struct {
				hold recipes.Hold
				err  error
			}
			wait := func(s recipes.Client) (places chan recipes.Place, granted chan turn) {
				places, granted = make(chan recipes.Place, 9), make(chan turn, 1)
				go func() {
					h, err := acquire(ctx(t), s, path, func(p recipes.Place) { places <- p })
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
			places, ours := wait(v.session)
			_, second := wait(v.session)
			_, theirs := wait(v.rival)
			before := ephemerals(v.server, path)
			for range 3 {
				v.kill()
				if after := ephemerals(v.server, path); !slices.Equal(before, after) {
					t.Fatalf("the wait queue was %q, then %q", before, after)
				}
			}
			if len(places) != 1 {
				t.Errorf("Joined was called %d times", len(places))
			}
			must.Do(t, first.Release(ctx(t)))
			last := first.Token()
			for i, granted := range []chan turn{ours, second, theirs} {
				now := <-granted
				if now.err != nil {
					t.Fatalf("contender %d: %v", i, now.err)
				}
				if now.hold.Token() <= last {
					t.Errorf("contender %d: token %d after %d", i, now.hold.Token(), last)
				}
				last = now.hold.Token()
				for _, later := range []chan turn{ours, second, theirs}[i+1:] {
					if len(later) > 0 {
						t.Errorf("granted beside contender %d: %+v", i, <-later)
					}
				}
				must.Report(t, now.hold.Release(ctx(t)))
			}
		})
	}
}

// resigning is a leadership with the Release of a lock.
type resigning struct{ recipes.Leadership }

func (r resigning) Release(ctx context.Context) error { return r.Resign(ctx) }

// TestASlotKeepsItsNumber: a waiter whose plugin has died is granted a slot other than the
// first. It keeps the number when the next plugin dies.
func TestASlotKeepsItsNumber(t *testing.T) {
	t.Parallel()
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
