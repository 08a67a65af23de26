package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"

	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// contending is a request of any recipe that stands in line.
type contending interface {
	GetStrategy() string
}

// The host names the strategy that it documents as its default: a plugin of another
// version may have another one.
func TestRequestsSayHowToWait(t *testing.T) {
	var sent []contending
	note := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if r, ok := req.(contending); ok {
			sent = append(sent, r)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	s := newServed(t, grpc.WithUnaryInterceptor(note)).open(t, 0)
	for name, enter := range map[string]func() error{
		"lock": func() error {
			l, err := s.Lock("/lock", recipes.LockConfig{})
			if err == nil {
				err = releases(l.Acquire(ctx(t)))
			}
			return err
		},
		"semaphore": func() error {
			m, err := s.Semaphore("/semaphore", recipes.SemaphoreConfig{Permits: 1})
			if err == nil {
				err = releases(m.Acquire(ctx(t)))
			}
			return err
		},
		"shared lock": func() error {
			l, err := s.SharedLock("/shared", recipes.SharedLockConfig{})
			if err == nil {
				err = releases(l.AcquireWrite(ctx(t)))
			}
			return err
		},
		"priority lock": func() error {
			l, err := s.PriorityLock("/priority", recipes.PriorityLockConfig{})
			if err == nil {
				err = releases(l.AcquireWrite(ctx(t)))
			}
			return err
		},
		"election": func() error {
			e, err := s.Election("/election", recipes.ElectionConfig{})
			if err != nil {
				return err
			}
			l, err := e.Campaign(ctx(t), nil)
			if err != nil {
				return err
			}
			return l.Resign(context.Background())
		},
	} {
		sent = nil
		if err := enter(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(sent) != 1 {
			t.Fatalf("%s: %d requests", name, len(sent))
		}
		if got := sent[0].GetStrategy(); got != string(recipes.DefaultStrategy) {
			t.Errorf("%s: strategy %q", name, got)
		}
	}
}

func releases[H recipes.Hold](h H, err error) error {
	if err != nil {
		return err
	}
	return h.Release(context.Background())
}

// A call that the plugin refuses because it does not know it names what was asked for.
func TestWhatIsUnsupportedIsNamed(t *testing.T) {
	spy := newSpy()
	s := newLink(t, spy.option()).open(t, 0)
	spy.answer("Acquire", func() error { return rpcwire.ToStatus(fmt.Errorf("%w: the strategy", recipes.ErrUnsupported), nil) })
	_, err := lock(t, s, recipes.LockConfig{}).Acquire(ctx(t))
	if !errors.Is(err, recipes.ErrUnsupported) || !strings.Contains(err.Error(), "/l") {
		t.Errorf("told %v", err)
	}
}
