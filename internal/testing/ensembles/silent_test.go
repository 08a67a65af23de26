package ensembles_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// The server of 20 holders dies, and of the other two, one accepts their connections and answers
// nothing. No holder loses its hold, because the attempts to reach a server are short enough for
// the session timeout. If each attempt took ConnectTimeout, the silent server would leave no time:
// here ConnectTimeout is as long as the session timeout, as it is by default with sessions of 2 s.
// All three servers are voters.
func TestEnsembleWhoseServerDiesBesideASilentOne(t *testing.T) {
	const holders = 20
	// Long enough for a busy machine.
	cfg := recipes.SessionConfig{
		Servers: []string{"dies:1", "silent:1", "works:1"}, SessionTimeout: long, ConnectTimeout: long, MaxPacket: 64 << 10,
	}
	leader, followers, _ := start(t, config(3))
	dies, works := followers[0], leader
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t) // the kernel accepts
	t.Cleanup(func() { silent.Close() })
	var died atomic.Bool
	var unanswered atomic.Int32
	dial := func(ctx context.Context, network, server string) (net.Conn, error) {
		address := dies.Addr()
		switch {
		case server == "dies:1":
		case !died.Load():
			return nil, syscall.ECONNREFUSED // so that all sessions are on one server
		case server == "works:1":
			address = works.Addr()
		default:
			unanswered.Add(1)
			address = silent.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	ctx := zktest.Bounded(t)
	sessions, holds := make([]recipes.Client, holders), make([]recipes.Hold, holders)
	for i := range holders {
		sessions[i] = must.Get(zookeeper.Dialer(dial).Open(ctx, cfg))(t)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second) // clean-up
			defer cancel()
			sessions[i].Close(ctx)
		})
		holds[i] = must.Get(must.Get(sessions[i].Lock(fmt.Sprintf("/held/%d", i), recipes.LockConfig{}))(t).Acquire(ctx))(t)
	}
	died.Store(true)
	must.Do(t, dies.Kill())
	for i, h := range holds {
		err := h.Write(ctx)
		for errors.Is(err, recipes.ErrUnknownOutcome) { // the last request was sent to the server that dies
			err = h.Write(ctx)
		}
		if err != nil || h.Err() != nil {
			t.Errorf("holder %d: %v, %v", i, err, h.Err())
		}
	}
	if unanswered.Load() == 0 {
		t.Error("no holder has met the silent server")
	}
}
