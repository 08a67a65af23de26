package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A plugin that is older than dialects ignores the field, and would create a contender of the
// default dialect, which does not exclude those that it should. So the host does not send the
// request.
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
	l := must.Get(s.Lock("/l", recipes.LockConfig{Dialect: recipes.Kazoo}))(t)
	sl := must.Get(s.SharedLock("/l", recipes.SharedLockConfig{Dialect: recipes.Curator}))(t)
	e := must.Get(s.Election("/l", recipes.ElectionConfig{Dialect: recipes.Kazoo}))(t)
	m := must.Get(s.Semaphore("/l", recipes.SemaphoreConfig{Permits: 2, Dialect: recipes.Curator}))(t)
	n := must.Get(s.Counter("/l", recipes.CounterConfig{Dialect: recipes.Curator}))(t)
	g := must.Get(s.Group("/l", recipes.GroupConfig{Dialect: recipes.Kazoo}))(t)
	q := must.Get(s.Queue("/l", recipes.QueueConfig{Dialect: recipes.Kazoo}))(t)
	p := must.Get(s.PriorityQueue("/l", recipes.QueueConfig{Dialect: recipes.Kazoo}))(t)
	b := must.Get(s.DoubleBarrier("/l", recipes.DoubleBarrierConfig{Size: 1, Dialect: recipes.Kazoo}))(t)
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
		if err := call(); !errors.Is(err, recipes.ErrUnsupported) {
			t.Errorf("%s: %v; want ErrUnsupported", name, err)
		}
	}
	if len(asked) != 1 || asked[0] != "Info" { // its answer is the same for all
		t.Errorf("asked the plugin for %q", asked)
	}
}

func TestAPluginIsAskedForItsDialectsOnce(t *testing.T) {
	spy := newSpy()
	s := newServed(t, spy.option()).open(t, 0)
	l := must.Get(s.Lock("/l", recipes.LockConfig{Dialect: recipes.Kazoo}))(t)
	for range 2 {
		must.Get(l.Contenders(ctx(t)))(t)
	}
	if n := spy.count("Info"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// The session moves to an older plugin while a call is in flight, or something is held. The first
// plugin's capabilities then say nothing about the plugin that gets the call.
func TestWhatAnOlderPluginIgnoresIsNotSentToItAfterAMove(t *testing.T) {
	for method, call := range map[string]func(t *testing.T, s recipes.Client, before *spy, move func()) error{
		"Acquire": func(t *testing.T, s recipes.Client, before *spy, move func()) error {
			before.loseAnswer("Acquire", move)
			_, err := lock(t, s, recipes.LockConfig{Dialect: recipes.Kazoo}).TryAcquire(ctx(t))
			return err
		},
		"AcquirePermit": func(t *testing.T, s recipes.Client, _ *spy, move func()) error { // a waiter whose place is known
			joined := make(chan recipes.Place, 2)
			m := must.Get(s.Semaphore("/s", recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Kazoo, Joined: func(p recipes.Place) { joined <- p }}))(t)
			holder := must.Get(m.Acquire(ctx(t)))(t)
			next(t, joined)
			failed := make(chan error, 1)
			go func() { _, err := m.Acquire(ctx(t)); failed <- err }()
			next(t, joined)
			move()
			matches(t, holder.Release(ctx(t)), recipes.ErrNotHeld)
			return next(t, failed)
		},
		"Contenders": func(t *testing.T, s recipes.Client, before *spy, move func()) error {
			before.loseAnswer("Contenders", move)
			_, err := lock(t, s, recipes.LockConfig{Dialect: recipes.Kazoo}).Contenders(ctx(t))
			return err
		},
		"AddCount": func(t *testing.T, s recipes.Client, before *spy, move func()) error {
			before.refuse("AddCount", func() error { move(); return recipes.ErrSessionLost }) // the plugin was detached
			_, err := must.Get(s.Counter("/c", recipes.CounterConfig{Dialect: recipes.Curator}))(t).Add(ctx(t), 1)
			return err
		},
		"Join": func(t *testing.T, s recipes.Client, _ *spy, move func()) error { // resumes the hold
			m := must.Get(must.Get(s.Group("/g", recipes.GroupConfig{Dialect: recipes.Kazoo}))(t).Join(ctx(t), nil))(t)
			move()
			_ = m.Update(ctx(t), nil) // when the next plugin serves the session
			return m.Err()
		},
		"WatchMembers": func(t *testing.T, s recipes.Client, _ *spy, move func()) error {
			g := must.Get(s.Group("/g", recipes.GroupConfig{Dialect: recipes.Kazoo}))(t)
			members := must.Get(g.Watch(ctx(t)))(t)
			next(t, members)
			move()
			if m := next(t, members); m != nil {
				t.Errorf("the older plugin reports the members %v", m)
			}
			_, err := g.Watch(ctx(t))
			return err
		},
		"Write": func(t *testing.T, s recipes.Client, before *spy, move func()) error {
			h, other := acquire(t, s), must.Get(must.Get(s.Lock("/other", recipes.LockConfig{}))(t).Acquire(ctx(t)))(t)
			both := []recipes.Op{recipes.Held(other)}
			must.Do(t, h.Write(ctx(t), both...))
			before.refuse("Write", func() error { move(); return recipes.ErrSessionLost })
			return h.Write(ctx(t), both...)
		},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s, before, after, move := moving(t)
			after.able = []string{"resume"}
			matches(t, call(t, s, before, move), recipes.ErrUnsupported)
			if n := after.count(method); n > 0 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}

// A plugin that could not be asked may know the dialect.
func TestAnUnansweredQuestionIsNoRefusalOfADialect(t *testing.T) {
	spy := newSpy()
	spy.answer("Info", func() error { return rpcwire.ToStatus(recipes.ErrUnavailable, nil) })
	l := must.Get(newServed(t, spy.option()).open(t, 0).Lock("/l", recipes.LockConfig{Dialect: recipes.Kazoo}))(t)
	if _, err := l.Contenders(ctx(t)); !errors.Is(err, recipes.ErrUnavailable) || errors.Is(err, recipes.ErrUnsupported) {
		t.Error(err)
	}
}

// ofTomorrow changes the dialect of a request to an unknown one, including nested messages.
func ofTomorrow(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Name() == "dialect":
			m.Set(f, protoreflect.ValueOfString("of tomorrow"))
		case f.Kind() == protoreflect.MessageKind && !f.IsList() && !f.IsMap():
			ofTomorrow(v.Message())
		}
		return true
	})
}

// A newer host's dialect, unknown to the plugin, is refused before anything is created.
// Contenders of that dialect would not see one of the default.
func TestADialectThatThePluginDoesNotKnowIsUnsupported(t *testing.T) {
	newer := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ofTomorrow(req.(proto.Message).ProtoReflect())
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	s, ctx := newServed(t, grpc.WithUnaryInterceptor(newer)).open(t, 0), ctx(t)
	for _, k := range kinds {
		if k.own {
			continue
		}
		if _, err := k.take(ctx, s, "/"+k.name, recipes.Kazoo); !errors.Is(err, recipes.ErrUnsupported) {
			t.Errorf("%s: %v; want ErrUnsupported", k.name, err)
		}
	}
	counter := must.Get(s.Counter("/counter", recipes.CounterConfig{Dialect: recipes.Curator}))(t)
	if _, err := counter.Add(ctx, 1); !errors.Is(err, recipes.ErrUnsupported) {
		t.Errorf("counter: %v; want ErrUnsupported", err)
	}
	top := must.Get(s.Names("/"))(t)
	if all, err := top.List(ctx); err != nil || len(all) > 1 { // ZooKeeper's own
		t.Errorf("made: %+v, %v", all, err)
	}
}

// A message can only contain UTF-8, so the plugin cannot refuse such a name.
func TestANameThatCannotBeSentIsInvalid(t *testing.T) {
	names := must.Get(newLink(t).open(t, time.Minute).Names("/n"))(t)
	if _, err := names.Lookup(ctx(t), "\xff"); !errors.Is(err, recipes.ErrInvalid) {
		t.Error(err)
	}
}
