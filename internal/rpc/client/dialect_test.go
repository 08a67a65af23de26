package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A plugin from before dialects would not read the field, and make a contender of the
// default beside those that it should exclude. So it is not asked for one.
func TestAnOlderPluginIsNotAskedForADialect(t *testing.T) {
	var asked []string
	older := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		asked = append(asked, method[strings.LastIndexByte(method, '/')+1:])
		err := invoke(ctx, method, req, reply, cc, opts...)
		if info, ok := reply.(*pb.InfoResponse); ok {
			info.Capabilities = []string{"lock", "election", "shared-lock", "contenders"}
		}
		return err
	}
	s := newLink(t, grpc.WithUnaryInterceptor(older)).open(t, time.Minute)
	ctx := t.Context()
	l, err := s.Lock("/l", recipes.LockConfig{Dialect: recipes.Kazoo})
	if err != nil {
		t.Fatal(err)
	}
	sl, err := s.SharedLock("/l", recipes.SharedLockConfig{Dialect: recipes.Curator})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Election("/l", recipes.ElectionConfig{Dialect: recipes.Kazoo})
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Semaphore("/l", recipes.SemaphoreConfig{Permits: 2, Dialect: recipes.Curator})
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Counter("/l", recipes.CounterConfig{Dialect: recipes.Curator})
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Group("/l", recipes.GroupConfig{Dialect: recipes.Kazoo})
	if err != nil {
		t.Fatal(err)
	}
	q, err := s.Queue("/l", recipes.QueueConfig{Dialect: recipes.Kazoo})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.PriorityQueue("/l", recipes.QueueConfig{Dialect: recipes.Kazoo})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.DoubleBarrier("/l", recipes.DoubleBarrierConfig{Size: 1, Dialect: recipes.Kazoo})
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"enter":        func() error { _, err := b.Enter(ctx, nil); return err },
		"permit":       func() error { _, err := m.Acquire(ctx); return err },
		"permits":      func() error { _, err := m.Contenders(ctx); return err },
		"count":        func() error { _, err := n.Get(ctx); return err },
		"add":          func() error { _, err := n.Add(ctx, 1); return err },
		"join":         func() error { _, err := g.Join(ctx, nil); return err },
		"members":      func() error { _, err := g.Members(ctx); return err },
		"watch":        func() error { _, err := g.Watch(ctx); return err },
		"put":          func() error { _, err := q.Put(ctx, nil); return err },
		"put many":     func() error { _, err := p.PutMany(ctx, 1, nil); return err },
		"take":         func() error { _, err := q.Take(ctx); return err },
		"receive":      func() error { _, err := p.Receive(ctx); return err },
		"peek":         func() error { _, err := q.Peek(ctx); return err },
		"len":          func() error { _, err := q.Len(ctx); return err },
		"dead letters": func() error { _, err := q.DeadLetters(ctx); return err },
		"acquire":      func() error { _, err := l.Acquire(ctx); return err },
		"try":          func() error { _, err := l.TryAcquire(ctx); return err },
		"contenders":   func() error { _, err := l.Contenders(ctx); return err },
		"read":         func() error { _, err := sl.AcquireRead(ctx); return err },
		"revoke":       func() error { return sl.Revoke(ctx, "/l/x") },
		"campaign":     func() error { _, err := e.Campaign(ctx, nil); return err },
		"leader":       func() error { _, err := e.Leader(ctx); return err },
		"observe":      func() error { _, err := e.Observe(ctx); return err },
	} {
		asked = nil
		if err := call(); !errors.Is(err, recipes.ErrUnsupported) {
			t.Errorf("%s: %v; want ErrUnsupported", name, err)
		}
		if len(asked) != 1 || asked[0] != "Info" {
			t.Errorf("%s asked the plugin for %q", name, asked)
		}
	}
}

func TestAPluginIsAskedForItsDialectsOnce(t *testing.T) {
	spy := newSpy()
	s := newServed(t, spy.option()).open(t, 0)
	l, err := s.Lock("/l", recipes.LockConfig{Dialect: recipes.Kazoo})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.Contenders(ctx(t)); err != nil {
			t.Fatal(err)
		}
	}
	if n := spy.count("Info"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
