package link_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
	s, ctx := newLink(t, grpc.WithUnaryInterceptor(newer)).open(t, 0), ctx(t)
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
