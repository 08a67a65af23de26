package link_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	rpclink "github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"google.golang.org/grpc"
)

// releaseFunc releases a grant.
type releaseFunc func(context.Context) error

// A kind is a kind of grant.
type kind struct {
	name string
	line bool // the recipe has a wait queue
	// take acquires it at a path, in the given dialect if it has dialects.
	take func(ctx context.Context, s recipes.Client, path string, d recipes.Dialect) (releaseFunc, error)
	own  bool // the recipe has no dialects
}

var kinds = []kind{
	{name: "lock", line: true, take: func(ctx context.Context, s recipes.Client, path string, d recipes.Dialect) (releaseFunc, error) {
		return take(ctx, recipes.Lock.Acquire, recipes.Hold.Release)(s.Lock(path, recipes.LockConfig{Dialect: d}))
	}},
	{name: "shared lock", line: true, take: func(ctx context.Context, s recipes.Client, path string, d recipes.Dialect) (releaseFunc, error) {
		return take(ctx, recipes.SharedLock.AcquireRead, recipes.SharedHold.Release)(s.SharedLock(path, recipes.SharedLockConfig{Dialect: d}))
	}},
	{name: "priority lock", line: true, own: true, take: func(ctx context.Context, s recipes.Client, path string, _ recipes.Dialect) (releaseFunc, error) {
		return take(ctx, recipes.PriorityLock.AcquireWrite, recipes.PriorityHold.Release)(s.PriorityLock(path, recipes.PriorityLockConfig{}))
	}},
	{name: "semaphore", line: true, take: func(ctx context.Context, s recipes.Client, path string, d recipes.Dialect) (releaseFunc, error) {
		return take(ctx, recipes.Semaphore.Acquire, recipes.Hold.Release)(s.Semaphore(path, recipes.SemaphoreConfig{Permits: 1, Dialect: d}))
	}},
	{name: "election", line: true, take: func(ctx context.Context, s recipes.Client, path string, d recipes.Dialect) (releaseFunc, error) {
		campaign := func(e recipes.Election, ctx context.Context) (recipes.Leadership, error) { return e.Campaign(ctx, nil) }
		return take(ctx, campaign, recipes.Leadership.Resign)(s.Election(path, recipes.ElectionConfig{Dialect: d}))
	}},
	{name: "group", take: func(ctx context.Context, s recipes.Client, path string, d recipes.Dialect) (releaseFunc, error) {
		join := func(g recipes.Group, ctx context.Context) (recipes.Membership, error) { return g.Join(ctx, nil) }
		return take(ctx, join, recipes.Membership.Leave)(s.Group(path, recipes.GroupConfig{Dialect: d}))
	}},
	{name: "name", own: true, take: func(ctx context.Context, s recipes.Client, path string, _ recipes.Dialect) (releaseFunc, error) {
		register := func(n recipes.Names, ctx context.Context) (recipes.Registration, error) {
			return n.Register(ctx, "it", nil)
		}
		return take(ctx, register, recipes.Registration.Unregister)(s.Names(path))
	}},
	{name: "double barrier", take: func(ctx context.Context, s recipes.Client, path string, d recipes.Dialect) (releaseFunc, error) {
		enter := func(b recipes.DoubleBarrier, ctx context.Context) (recipes.Passage, error) { return b.Enter(ctx, nil) }
		return take(ctx, enter, recipes.Passage.Leave)(s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: 1, Dialect: d}))
	}},
	{name: "element, acknowledged", take: func(ctx context.Context, s recipes.Client, path string, d recipes.Dialect) (releaseFunc, error) {
		return take(ctx, receive, recipes.Delivery.Ack)(s.Queue(path, recipes.QueueConfig{Dialect: d}))
	}},
	{name: "element, returned", take: func(ctx context.Context, s recipes.Client, path string, d recipes.Dialect) (releaseFunc, error) {
		return take(ctx, receive, recipes.Delivery.Return)(s.Queue(path, recipes.QueueConfig{Dialect: d}))
	}},
}

func receive(q recipes.Queue, ctx context.Context) (recipes.Delivery, error) {
	if _, err := q.Put(ctx, nil); err != nil {
		return nil, err
	}
	return q.Receive(ctx)
}

func take[R, G any](ctx context.Context, by func(R, context.Context) (G, error), end func(G, context.Context) error) func(R, error) (releaseFunc, error) {
	return func(recipe R, err error) (releaseFunc, error) {
		if err != nil {
			return nil, err
		}
		g, err := by(recipe, ctx)
		return func(ctx context.Context) error { return end(g, ctx) }, err
	}
}

// The plugin allows a session one grant, and the test acquires one kind after another. A
// released grant counts neither for the plugin's limit nor for the host's clock. A session
// may live for months and acquire all the time, so its host remembers nothing that has ended.
func TestAReleasedGrantIsNotHeld(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := newLinkWithin(t, server.Limits{Grants: 1}).open(t, 0)
			for range 3 {
				end := must.Get(k.take(ctx(t), s, "/it", ""))(t)
				if !rpclink.Holding(s) {
					t.Error("granted, and nothing is held")
				}
				if _, err := kinds[0].take(ctx(t), s, "/lock", ""); !errors.Is(err, recipes.ErrLimit) {
					t.Errorf("beside it: %v", err)
				}
				must.Do(t, end(ctx(t)))
				nothingIsKept(t, s)
			}
		})
	}
}

// nothingIsKept checks that a host remembers no grant of its session.
func nothingIsKept(t *testing.T, s recipes.Client) {
	t.Helper()
	if grants, owned, joins := rpclink.Kept(s); grants+owned+joins != 0 {
		t.Errorf("%d grants, %d possessions and %d contenders are kept", grants, owned, joins)
	}
	if rpclink.Holding(s) {
		t.Error("the clock counts as for one that holds something")
	}
}

// The host sends the strategy that it documents as its default: a plugin of another version
// may have another default.
func TestRequestsNameTheStrategy(t *testing.T) {
	var sent []string
	note := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if r, ok := req.(*pb.AcquireRequest); ok {
			m := r.ProtoReflect()
			recipe := m.Get(m.WhichOneof(m.Descriptor().Oneofs().ByName("recipe"))).Message()
			sent = append(sent, recipe.Get(recipe.Descriptor().Fields().ByName("strategy")).String())
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	s := newLink(t, grpc.WithUnaryInterceptor(note)).open(t, 0)
	for _, k := range kinds {
		if !k.line {
			continue
		}
		sent = nil
		end, err := k.take(ctx(t), s, "/"+k.name, "")
		if err == nil {
			err = end(ctx(t))
		}
		if err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
		if len(sent) != 1 {
			t.Fatalf("%s: %d requests", k.name, len(sent))
		}
		if sent[0] != string(recipes.Handoff) {
			t.Errorf("%s: strategy %q", k.name, sent[0])
		}
	}
}

// An ending is a way in which a session's grant, or its wait for one, ends.
type ending struct {
	name string
	run  func(t *testing.T, s, other recipes.Client) error
}

// endings are the ways that the table of kinds lacks.
func endings() []ending {
	lock := func(t *testing.T, s recipes.Client) recipes.Lock {
		return must.Get(s.Lock("/lock", recipes.LockConfig{}))(t)
	}
	return []ending{
		{"lock tried", func(t *testing.T, s, _ recipes.Client) error {
			return must.Get(lock(t, s).TryAcquire(ctx(t)))(t).Release(ctx(t))
		}},
		{"shared lock, downgraded", func(t *testing.T, s, _ recipes.Client) error {
			l := must.Get(s.SharedLock("/shared", recipes.SharedLockConfig{}))(t)
			h := must.Get(l.AcquireWrite(ctx(t)))(t)
			return errors.Join(h.Downgrade(ctx(t)), h.Release(ctx(t)))
		}},
		{"element", func(t *testing.T, s, _ recipes.Client) error {
			q := must.Get(s.Queue("/queue", recipes.QueueConfig{}))(t)
			must.Get(q.Put(ctx(t), nil))(t)
			_, err := q.Take(ctx(t))
			return err
		}},
		{"lock that another client has deleted", func(t *testing.T, s, other recipes.Client) error {
			hold := must.Get(lock(t, s).Acquire(ctx(t)))(t)
			if err := must.Get(other.Barrier(hold.Znode()))(t).Remove(ctx(t)); err != nil {
				return err
			}
			if err := hold.Release(ctx(t)); !errors.Is(err, recipes.ErrNotHeld) {
				return fmt.Errorf("released what was deleted: %w", err)
			}
			return nil
		}},
		{"lock whose wait was cancelled", func(t *testing.T, s, other recipes.Client) error {
			hold := must.Get(lock(t, other).Acquire(ctx(t)))(t)
			wait, cancel := context.WithCancel(ctx(t))
			l := must.Get(s.Lock("/lock", recipes.LockConfig{Joined: func(recipes.Place) { cancel() }}))(t)
			if _, err := l.Acquire(wait); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("cancelled: %w", err)
			}
			return hold.Release(ctx(t))
		}},
		{"lock that was contended", func(t *testing.T, s, other recipes.Client) error {
			hold := must.Get(lock(t, other).Acquire(ctx(t)))(t)
			if _, err := lock(t, s).TryAcquire(ctx(t)); !errors.Is(err, recipes.ErrContended) {
				return fmt.Errorf("contended: %w", err)
			}
			return hold.Release(ctx(t))
		}},
	}
}

func TestNothingIsKeptOfAnEndedGrant(t *testing.T) {
	l := newLink(t)
	other := l.open(t, 0)
	for _, e := range endings() {
		t.Run(e.name, func(t *testing.T) {
			s := l.open(t, 0)
			must.Do(t, e.run(t, s, other))
			nothingIsKept(t, s)
		})
	}
}

// Any amount of data that fits into ZooKeeper can be transferred: gRPC by default refuses
// more than 4 MiB.
func TestASnapshotOfManyMegabytesCrosses(t *testing.T) {
	c := must.Get(newLink(t).open(t, 0).Configuration("/c"))(t)
	value := bytes.Repeat([]byte("x"), 900<<10)
	const keys = 6
	for i := range keys {
		must.Get(c.Set(ctx(t), fmt.Sprint("k", i), value, recipes.NoRevision))(t)
	}
	entries := must.Get(c.Snapshot(ctx(t)))(t)
	n := 0
	for _, e := range entries {
		n += len(e.Value)
	}
	if n != keys*len(value) {
		t.Errorf("%d bytes in %d entries; %d were set", n, len(entries), keys*len(value))
	}
}

// The error of a call that the plugin does not support names the operation.
func TestWhatIsUnsupportedIsNamed(t *testing.T) {
	spy := newSpy()
	s := newLink(t, spy.option()).open(t, 0)
	spy.answer("Acquire lock", func() error { return rpcwire.ToStatus(fmt.Errorf("%w: the strategy", recipes.ErrUnsupported)) })
	_, err := lock(t, s, recipes.LockConfig{}).Acquire(ctx(t))
	if !errors.Is(err, recipes.ErrUnsupported) || !strings.Contains(err.Error(), "/l") {
		t.Errorf("got %v", err)
	}
}
