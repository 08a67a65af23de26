//go:build unix

package host_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// holding is a kind of grant.
type holding struct {
	name, path string
	znodes     string // the parent of the znodes of grants
	waits      bool   // for another contender, in a wait queue
	// get acquires a grant, in the order of the wait queue. joined may be nil.
	get      func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Grant, error)
	giveBack func(context.Context, recipes.Grant) error
	// try fails without waiting if another session has the grant. It may be nil.
	try func(context.Context, recipes.Client) (recipes.Grant, error)
}

// held is the kind of grant that methods of a recipe acquire and give back.
func held[R any, G recipes.Grant](name string, waits bool, of func(s recipes.Client, path string, joined func(recipes.Place)) (R, error),
	get, try func(R, context.Context) (G, error), giveBack func(G, context.Context) error) holding {
	granted := func(ctx context.Context, by func(R, context.Context) (G, error), s recipes.Client, path string, joined func(recipes.Place)) (recipes.Grant, error) {
		r, err := of(s, path, joined)
		if err != nil {
			return nil, err
		}
		g, err := by(r, ctx)
		if err != nil {
			return nil, err
		}
		return g, nil
	}
	h := holding{name: name, path: "/" + name, znodes: "/" + name, waits: waits}
	h.get = func(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Grant, error) {
		return granted(ctx, get, s, path, joined)
	}
	h.giveBack = func(ctx context.Context, g recipes.Grant) error { return giveBack(g.(G), ctx) }
	if try != nil {
		h.try = func(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
			return granted(ctx, try, s, h.path, nil)
		}
	}
	return h
}

// acquire acquires it at its own path.
func (h holding) acquire(ctx context.Context, s recipes.Client) (recipes.Grant, error) {
	return h.get(ctx, s, h.path, nil)
}

// isTaken checks that the rival is not granted it.
func (h holding) isTaken(t *testing.T, rival recipes.Client) {
	t.Helper()
	if h.try == nil {
		return
	}
	if _, err := h.try(ctx(t), rival); !errors.Is(err, recipes.ErrContended) && !errors.Is(err, recipes.ErrNodeExists) {
		t.Errorf("%s: the rival: %v", h.name, err)
	}
}

// isFree checks that the rival is granted it, with a larger token than the last.
func (h holding) isFree(t *testing.T, rival recipes.Client, last recipes.Token) {
	t.Helper()
	if h.try == nil {
		return
	}
	next, err := h.try(ctx(t), rival)
	if err == nil {
		err = h.giveBack(ctx(t), next)
	}
	if err != nil {
		t.Fatalf("%s: the rival, after the release: %v", h.name, err)
	}
	if next.Token() <= last {
		t.Errorf("%s: token %d after %d", h.name, next.Token(), last)
	}
}

// holdsAll acquires each kind of grant in the plugin's session.
func (v *surviving) holdsAll() (held []recipes.Grant) {
	v.Helper()
	prepare(v.T, v.rival)
	for _, h := range holdings {
		held = append(held, must.Get(h.acquire(ctx(v), v.session))(v))
	}
	return held
}

// prepare puts an element into the queue, for a delivery.
func prepare(t *testing.T, s recipes.Recipes) {
	t.Helper()
	q := must.Get(s.Queue("/delivery", recipes.QueueConfig{}))(t)
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

// ofLock is a hold of a lock.
func ofLock(name string, cfg recipes.LockConfig) holding {
	return held(name, true, func(s recipes.Client, path string, joined func(recipes.Place)) (recipes.Lock, error) {
		cfg := cfg
		cfg.Joined = joined
		return s.Lock(path, cfg)
	}, recipes.Lock.Acquire, recipes.Lock.TryAcquire, recipes.Hold.Release)
}

// ofSemaphore is the only permit of a semaphore. A waiter does not keep its place in Curator's.
func ofSemaphore(name string, dialect recipes.Dialect) holding {
	return held(name, dialect == "", func(s recipes.Client, path string, joined func(recipes.Place)) (recipes.Semaphore, error) {
		return s.Semaphore(path, recipes.SemaphoreConfig{Permits: 1, Dialect: dialect, Joined: joined})
	}, recipes.Semaphore.Acquire, recipes.Semaphore.TryAcquire, recipes.Hold.Release)
}

// leases is the permit of Curator. The parent of its znodes is not the semaphore's.
func leases() holding {
	h := ofSemaphore("leased", recipes.Curator)
	h.znodes += "/leases"
	return h
}

var holdings = []holding{
	ofLock("lock", recipes.LockConfig{}),
	ofLock("herd", recipes.LockConfig{Strategy: recipes.Herd}),
	held("reader", false, func(s recipes.Client, path string, joined func(recipes.Place)) (recipes.SharedLock, error) {
		return s.SharedLock(path, recipes.SharedLockConfig{Joined: joined})
	}, recipes.SharedLock.AcquireRead, recipes.SharedLock.TryWrite, recipes.SharedHold.Release),
	held("writer", true, func(s recipes.Client, path string, joined func(recipes.Place)) (recipes.SharedLock, error) {
		return s.SharedLock(path, recipes.SharedLockConfig{Revocable: true, Joined: joined})
	}, recipes.SharedLock.AcquireWrite, recipes.SharedLock.TryRead, recipes.SharedHold.Release),
	ofSemaphore("permit", ""),
	leases(),
	held("slot", true, func(s recipes.Client, path string, joined func(recipes.Place)) (recipes.Slots, error) {
		return s.Slots(path, recipes.SemaphoreConfig{Permits: 1, Joined: joined})
	}, recipes.Slots.Acquire, recipes.Slots.TryAcquire, recipes.SlotHold.Release),
	held("priority", true, func(s recipes.Client, path string, joined func(recipes.Place)) (recipes.PriorityLock, error) {
		return s.PriorityLock(path, recipes.PriorityLockConfig{Priority: 3, Joined: joined})
	}, recipes.PriorityLock.AcquireWrite, recipes.PriorityLock.TryWrite, recipes.PriorityHold.Release),
	held("leadership", true, func(s recipes.Client, path string, joined func(recipes.Place)) (recipes.Election, error) {
		return s.Election(path, recipes.ElectionConfig{Joined: joined})
	}, func(e recipes.Election, ctx context.Context) (recipes.Leadership, error) {
		return e.Campaign(ctx, []byte("me"))
	}, nil, recipes.Leadership.Resign),
	held("membership", false, func(s recipes.Client, path string, _ func(recipes.Place)) (recipes.Group, error) {
		return s.Group(path, recipes.GroupConfig{Name: "me"})
	}, join, join, recipes.Membership.Leave),
	held("name", false, func(s recipes.Client, path string, _ func(recipes.Place)) (recipes.Names, error) {
		return s.Names(path)
	}, register, register, recipes.Registration.Unregister),
	held("delivery", false, func(s recipes.Client, path string, _ func(recipes.Place)) (recipes.Queue, error) {
		return s.Queue(path, recipes.QueueConfig{})
	}, recipes.Queue.Receive, nil, recipes.Delivery.Ack),
	held("passage", false, func(s recipes.Client, path string, _ func(recipes.Place)) (recipes.DoubleBarrier, error) {
		return s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: 1})
	}, func(b recipes.DoubleBarrier, ctx context.Context) (recipes.Passage, error) { return b.Enter(ctx, nil) }, nil, recipes.Passage.Leave),
}

func join(g recipes.Group, ctx context.Context) (recipes.Membership, error) { return g.Join(ctx, nil) }

func register(n recipes.Names, ctx context.Context) (recipes.Registration, error) {
	return n.Register(ctx, "me", nil)
}

// awaited is a grant with three waiters: two in the plugin's session, and then the rival.
type awaited struct {
	holding
	*surviving
	first  recipes.Grant
	places chan recipes.Place // of the first waiter
	turns  []chan turn
	line   []string // the znodes of the wait queue
}

type turn struct {
	recipes.Grant
	err error
}

func (v *surviving) awaits(h holding) awaited {
	v.Helper()
	a := awaited{holding: h, surviving: v, first: must.Get(h.acquire(ctx(v), v.rival))(v), places: make(chan recipes.Place, 9)}
	for i, s := range []recipes.Client{v.session, v.session, v.rival} {
		joined, granted := make(chan recipes.Place, 9), make(chan turn, 1)
		if i == 0 {
			joined = a.places
		}
		go func() {
			g, err := h.get(ctx(v), s, h.path, func(p recipes.Place) { joined <- p })
			granted <- turn{g, err}
		}()
		select {
		case p := <-joined:
			joined <- p
		case early := <-granted:
			v.Fatalf("%s: granted: %+v", h.name, early)
		}
		a.turns = append(a.turns, granted)
	}
	a.line = ephemerals(v.server, h.path)
	return a
}

// keepsTheOrder checks that each waiter is granted in its turn.
func (a awaited) keepsTheOrder() {
	a.Helper()
	if len(a.places) != 1 {
		a.Errorf("%s: Joined was called %d times", a.name, len(a.places))
	}
	must.Do(a, a.giveBack(ctx(a), a.first))
	last := a.first.Token()
	for i, granted := range a.turns {
		now := <-granted
		if now.err != nil {
			a.Fatalf("%s: contender %d: %v", a.name, i, now.err)
		}
		if now.Token() <= last {
			a.Errorf("%s: contender %d: token %d after %d", a.name, i, now.Token(), last)
		}
		last = now.Token()
		for _, later := range a.turns[i+1:] {
			if len(later) > 0 {
				a.Errorf("%s: granted beside contender %d: %+v", a.name, i, <-later)
			}
		}
		must.Report(a, a.giveBack(ctx(a), now.Grant))
	}
}

// TestAWaiterKeepsItsPlaceWhenItsPluginDies: Joined is called once. The waiter keeps its znode
// behind the same contender, ahead of later ones, and is granted in its turn.
func TestAWaiterKeepsItsPlaceWhenItsPluginDies(t *testing.T) {
	t.Parallel()
	v := survive(t)
	var all []awaited
	for _, h := range slices.Concat(holdings, []holding{
		ofLock("predecessor", recipes.LockConfig{Strategy: recipes.Predecessor}),
		ofLock("curator", recipes.LockConfig{Dialect: recipes.Curator}),
		ofLock("kazoo", recipes.LockConfig{Dialect: recipes.Kazoo}),
	}) {
		if h.waits {
			all = append(all, v.awaits(h))
		}
	}
	for range 2 {
		v.kill()
		for _, a := range all {
			if after := ephemerals(v.server, a.path); !slices.Equal(a.line, after) {
				t.Fatalf("the wait queue was %q, then %q", a.line, after)
			}
		}
	}
	for _, a := range all {
		a.keepsTheOrder()
	}
}

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
	if h.Slot() != 1 {
		t.Errorf("number %d of %s; want 1", h.Slot(), h.Znode())
	}
}
