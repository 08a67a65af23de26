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

// contending is a request of any recipe with a wait queue.
type contending interface {
	GetStrategy() string
}

// The host sends the strategy that it documents as its default: a plugin of another version
// may have another default.
func TestRequestsNameTheStrategy(t *testing.T) {
	var sent []contending
	note := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if r, ok := req.(contending); ok {
			sent = append(sent, r)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	s := newServed(t, grpc.WithUnaryInterceptor(note)).open(t, 0)
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
		if got := sent[0].GetStrategy(); got != string(recipes.Handoff) {
			t.Errorf("%s: strategy %q", k.name, got)
		}
	}
}

// The error of a call that the plugin does not support names the operation.
func TestWhatIsUnsupportedIsNamed(t *testing.T) {
	spy := newSpy()
	s := newLink(t, spy.option()).open(t, 0)
	spy.answer("Acquire", func() error { return rpcwire.ToStatus(fmt.Errorf("%w: the strategy", recipes.ErrUnsupported), nil) })
	_, err := lock(t, s, recipes.LockConfig{}).Acquire(ctx(t))
	if !errors.Is(err, recipes.ErrUnsupported) || !strings.Contains(err.Error(), "/l") {
		t.Errorf("got %v", err)
	}
}
