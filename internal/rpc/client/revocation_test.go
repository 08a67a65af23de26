package client_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"

	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// No other message reports the loss here, because the plugin refuses to watch.
func TestWaitForARevocationReportsTheLossOfTheHold(t *testing.T) {
	refused := map[string]error{"Watch": recipes.ErrUnsupported, "AwaitRevocation": recipes.ErrRemoved}
	s := newServed(t, grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if err := refused[method[strings.LastIndexByte(method, '/')+1:]]; err != nil {
			return rpcwire.ToStatus(err, nil)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	})).open(t, 0)
	h := acquireRead(t, s)
	revoked := h.Revoked()
	closes(t, "Done", h.Done())
	matches(t, h.Err(), recipes.ErrRemoved)
	select {
	case <-revoked:
		t.Error("the hold was revoked")
	default:
	}
}

// The wait ends even if the plugin does not answer.
func TestWaitForARevocationEndsWithTheHold(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	s := newServed(t, grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if !strings.HasSuffix(method, "/AwaitRevocation") {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		close(asked)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	})).open(t, 0)
	h := acquireRead(t, s)
	h.Revoked()
	closes(t, "the question", asked)
	must.Do(t, h.Release(ctx(t)))
	closes(t, "the wait", ended)
}

func acquireRead(t *testing.T, s recipes.Recipes) recipes.SharedHold {
	t.Helper()
	l := must.Get(s.SharedLock("/l", recipes.SharedLockConfig{Revocable: true}))(t)
	return must.Get(l.AcquireRead(ctx(t)))(t)
}
