package server_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// bereaved is a host that holds a lock, waits for another, and may die.
type bereaved struct {
	*testing.T
	*rawHost
	world        *fake.World
	cancelStream context.CancelFunc // ends the session's stream alone
	detach       context.CancelFunc // ends Attach alone
	lifetime     chan struct{}
}

func newBereaved(t *testing.T) *bereaved {
	b := &bereaved{T: t, world: new(fake.World), lifetime: make(chan struct{})}
	b.rawHost = newRawHost(t, server.Config{Open: b.world.Open, Lifetime: b.lifetime})
	b.timeout = time.Second
	attached, detach := context.WithCancel(t.Context())
	opened, cancelStream := context.WithCancel(t.Context())
	b.detach, b.cancelStream = detach, cancelStream
	a := must.Get(b.plugin.Attach(attached, &pb.AttachRequest{}))(t)
	must.Get(a.Recv())(t)
	must.Get(b.try(opened, nil))(t)
	other := must.Get(b.world.Open(t.Context(), recipes.SessionConfig{Servers: []string{"fake"}, SessionTimeout: time.Second}))(t)
	acquired(t, other, "/theirs")
	must.Get(b.acquire(&pb.AcquireRequest{RequestId: "1", Path: "/ours"}))(t)
	// The call lasts until the end of the connection or of the session.
	go b.acquire(&pb.AcquireRequest{RequestId: "2", Path: "/theirs"})
	must.Do(t, b.world.Wait(t.Context(), func() bool { return len(b.world.Line("/theirs")) == 2 }))
	return b
}

// holds checks whether the host's session exists, and that the plugin ends if it does not.
func (b *bereaved) holds(want bool) {
	b.Helper()
	synctest.Wait()
	if err := b.world.Session(0).Err(); (err == nil) != want {
		b.Errorf("the session's error is %v; it should exist: %v", err, want)
	}
	if got := len(b.world.Line("/ours")); (got == 1) != want {
		b.Errorf("%d contenders at the lock that was held", got)
	}
	select {
	case <-b.server.Orphaned():
		if want {
			b.Error("the plugin would end")
		}
	default:
		if !want {
			b.Error("the plugin would not end")
		}
	}
}

// The session survives its host until the lifetime or the session ends.
func TestSessionOutlivesItsHostForTheLifetime(t *testing.T) {
	for name, end := range map[string]func(*bereaved){
		"lifetime": func(b *bereaved) { close(b.lifetime) },
		"session":  func(b *bereaved) { b.world.Session(0).Lose(recipes.ErrExpired) },
		"after a message that could not be sent": func(b *bereaved) {
			b.world.Session(0).Suspend()
			b.holds(true)
			close(b.lifetime)
		},
		"session, after a message that could not be sent": func(b *bereaved) {
			b.world.Session(0).Suspend()
			b.holds(true)
			b.world.Session(0).Lose(recipes.ErrExpired)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBereaved(t)
				_ = b.conn.Close()
				b.holds(true)
				if n := len(b.world.Line("/theirs")); n != 1 {
					t.Errorf("%d contenders; a host that has died waits for nothing", n)
				}
				time.Sleep(time.Minute) // without a heartbeat
				b.holds(true)
				end(b)
				b.holds(false)
			})
		})
	}
}

// Close ends the session, as SIGTERM does.
func TestSessionOfAHostThatHasDiedEndsWithThePlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBereaved(t)
		_ = b.conn.Close()
		b.holds(true)
		must.Report(t, b.server.Close(t.Context()))
		b.holds(false)
	})
}

// The lifetime only applies to hosts that have died.
func TestLiveHostEndsItsSession(t *testing.T) {
	for name, end := range map[string]func(*bereaved){
		"hangs up":    func(b *bereaved) { b.cancelStream() },
		"half-closes": func(b *bereaved) { _ = b.stream.CloseSend(); time.Sleep(time.Second) },
		"half-closes, and dies": func(b *bereaved) {
			_ = b.stream.CloseSend()
			synctest.Wait()
			_ = b.conn.Close()
		},
		"frozen": func(*bereaved) { time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBereaved(t)
				end(b)
				synctest.Wait()
				if b.world.Session(0).Err() == nil {
					t.Error("the session still exists")
				}
				b.detach()
				b.holds(false)
			})
		})
	}
}

// The host's children ended before the host.
func TestHostThatDiesAfterTheLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBereaved(t)
		close(b.lifetime)
		b.holds(true)
		_ = b.conn.Close()
		b.holds(false)
	})
}
