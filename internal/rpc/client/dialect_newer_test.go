package client_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// ofTomorrow changes the dialect of a request, also in what it contains.
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

// A dialect of a newer host, which the plugin does not know, is refused before anything
// is made. Contenders of that dialect would not see one of the default.
func TestADialectThatThePluginDoesNotKnowIsUnsupported(t *testing.T) {
	newer := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ofTomorrow(req.(proto.Message).ProtoReflect())
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	s, ctx := newServed(t, grpc.WithUnaryInterceptor(newer)).open(t, 0), ctx(t)
	const d = recipes.Kazoo
	for name, call := range map[string]func(path string) error{
		"lock": func(path string) error {
			r, err := s.Lock(path, recipes.LockConfig{Dialect: d})
			if err == nil {
				_, err = r.TryAcquire(ctx)
			}
			return err
		},
		"shared lock": func(path string) error {
			r, err := s.SharedLock(path, recipes.SharedLockConfig{Dialect: d})
			if err == nil {
				_, err = r.TryRead(ctx)
			}
			return err
		},
		"election": func(path string) error {
			r, err := s.Election(path, recipes.ElectionConfig{Dialect: d})
			if err == nil {
				_, err = r.Campaign(ctx, nil)
			}
			return err
		},
		"semaphore": func(path string) error {
			r, err := s.Semaphore(path, recipes.SemaphoreConfig{Permits: 1, Dialect: d})
			if err == nil {
				_, err = r.TryAcquire(ctx)
			}
			return err
		},
		"counter": func(path string) error {
			r, err := s.Counter(path, recipes.CounterConfig{Dialect: d})
			if err == nil {
				_, err = r.Add(ctx, 1)
			}
			return err
		},
		"group": func(path string) error {
			r, err := s.Group(path, recipes.GroupConfig{Dialect: d})
			if err == nil {
				_, err = r.Join(ctx, nil)
			}
			return err
		},
		"double barrier": func(path string) error {
			r, err := s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: 1, Dialect: d})
			if err == nil {
				_, err = r.Enter(ctx, nil)
			}
			return err
		},
		"queue": func(path string) error {
			r, err := s.Queue(path, recipes.QueueConfig{Dialect: d})
			if err == nil {
				_, err = r.Put(ctx, nil)
			}
			return err
		},
	} {
		if err := call("/" + name); !errors.Is(err, recipes.ErrUnsupported) {
			t.Errorf("%s: %v; want ErrUnsupported", name, err)
		}
	}
	top, err := s.Names("/")
	if err != nil {
		t.Fatal(err)
	}
	if all, err := top.List(ctx); err != nil || len(all) > 1 { // zookeeper's own
		t.Errorf("made: %+v, %v", all, err)
	}
}
