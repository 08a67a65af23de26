package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// deafTo drops the answers to a method.
func deafTo(method string) grpc.DialOption {
	return grpc.WithUnaryInterceptor(func(ctx context.Context, full string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, full, req, reply, cc, opts...)
		if strings.HasSuffix(full, "/"+method) {
			return status.Error(codes.Canceled, "the answer was lost")
		}
		return err
	})
}

// handOff returns a holder and its waiting successor, which have different sessions of one
// host. open opens the sessions.
func handOff(t *testing.T, open func(*zkserver.Server) recipes.Opener, opts ...grpc.DialOption) (holder recipes.PriorityHold, successor string, granted <-chan error) {
	t.Helper()
	srv := zooKeeper(t)
	conn, _ := serve(t, server.Config{Open: open(srv)}, opts...)
	host := client.New(conn, nil)
	t.Cleanup(func() { host.Close() })
	ctx := bounded(t)
	lock := func(cfg recipes.PriorityLockConfig) recipes.PriorityLock {
		s := must.Get(host.Open(ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}}))(t)
		return must.Get(s.PriorityLock("/l", cfg))(t)
	}
	holder = must.Get(lock(recipes.PriorityLockConfig{}).AcquireWrite(ctx))(t)
	joined, done := make(chan recipes.Place, 1), make(chan error, 1)
	next := lock(recipes.PriorityLockConfig{Joined: func(p recipes.Place) { joined <- p }})
	go func() { _, err := next.AcquireWrite(ctx); done <- err }()
	return holder, (<-joined).Znode, done
}

// The successor already holds the lock. Without a report of the loss, two clients would
// consider themselves the holder.
func TestHandOffWhoseAnswerIsLostClosesLost(t *testing.T) {
	holder, successor, granted := handOff(t, func(*zkserver.Server) recipes.Opener { return zookeeper.Open }, deafTo("HandOff"))
	handsOff(bounded(t), t, holder, successor, granted)
}

// ZooKeeper's reply was lost. The plugin answers with an unknown outcome after it has learned
// that the handoff happened.
func TestHandOffThatIsGivenUpClosesLost(t *testing.T) {
	learnt := make(chan recipes.PriorityHold, 2)
	holder, successor, granted := handOff(t, func(srv *zkserver.Server) recipes.Opener {
		return func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
			s, err := zookeeper.Open(ctx, cfg)
			return known{s, learnt, srv}, err
		}
	})
	inPlugin := <-learnt
	holder.Done() // makes the plugin watch
	ctx, cancel := context.WithCancel(bounded(t))
	go func() { <-inPlugin.Done(); cancel() }()
	handsOff(ctx, t, holder, successor, granted)
}

// handsOff hands off, with an answer that does not contain the outcome.
func handsOff(ctx context.Context, t *testing.T, holder recipes.PriorityHold, successor string, granted <-chan error) {
	t.Helper()
	lost := holder.Done()
	if err := holder.HandOff(ctx, successor); !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	must.Do(t, <-granted)
	select {
	case <-lost:
	case <-bounded(t).Done():
		t.Fatal("the former holder gets no loss")
	}
	if err := holder.Err(); !errors.Is(err, recipes.ErrReleased) {
		t.Error(err)
	}
}

// known is a session that records its priority holds, and in which the outcome of a
// transaction whose reply was lost stays unknown.
type known struct {
	recipes.Client
	holds  chan<- recipes.PriorityHold
	server *zkserver.Server
}

func (k known) PriorityLock(path string, cfg recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	l, err := k.Client.PriorityLock(path, cfg)
	return knownLock{l, k}, err
}

type knownLock struct {
	recipes.PriorityLock
	session known
}

func (l knownLock) AcquireWrite(ctx context.Context) (recipes.PriorityHold, error) {
	h, err := l.PriorityLock.AcquireWrite(ctx)
	if err == nil {
		l.session.holds <- h
		h = knownHold{h, l.session}
	}
	return h, err
}

type knownHold struct {
	recipes.PriorityHold
	session known
}

func (h knownHold) HandOff(ctx context.Context, successor string) error {
	h.session.server.SetFault(func(r zkserver.Request) zkserver.Fault {
		mine := r.SessionID == h.session.ID()
		return zkserver.Fault{DropReply: mine && r.Op == zkserver.OpMulti, CloseBefore: mine && r.Op == zkserver.OpSync}
	})
	return h.PriorityHold.HandOff(ctx, successor)
}
