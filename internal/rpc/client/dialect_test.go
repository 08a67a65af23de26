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
	for name, call := range map[string]func() error{
		"acquire":    func() error { _, err := l.Acquire(ctx); return err },
		"try":        func() error { _, err := l.TryAcquire(ctx); return err },
		"contenders": func() error { _, err := l.Contenders(ctx); return err },
		"read":       func() error { _, err := sl.AcquireRead(ctx); return err },
		"revoke":     func() error { return sl.Revoke(ctx, "/l/x") },
		"campaign":   func() error { _, err := e.Campaign(ctx, nil); return err },
		"leader":     func() error { _, err := e.Leader(ctx); return err },
		"observe":    func() error { _, err := e.Observe(ctx); return err },
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
