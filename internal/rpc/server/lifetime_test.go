package server_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// bereaved is a host that holds a lock, waits for another, and may die.
type bereaved struct {
	*testing.T
	*rawHost
	id           int64              // of its session
	cancelStream context.CancelFunc // ends the session's stream alone
	detach       context.CancelFunc // ends Attach alone
	lifetime     chan struct{}
}

func newBereaved(t *testing.T) *bereaved {
	b := &bereaved{T: t, lifetime: make(chan struct{})}
	b.rawHost = newRawHost(t, server.Config{Lifetime: b.lifetime})
	b.timeout = time.Second
	attached, detach := context.WithCancel(t.Context())
	opened, cancelStream := context.WithCancel(t.Context())
	b.detach, b.cancelStream = detach, cancelStream
	a := must.Get(b.plugin.Attach(attached, &pb.AttachRequest{}))(t)
	must.Get(a.Recv())(t)
	must.Get(b.try(opened, nil))(t)
	b.id = b.opened.ID()
	other := must.Get(b.dial.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: time.Second}))(t)
	t.Cleanup(func() { other.Close(context.Background()) })
	acquired(t, other, "/theirs")
	must.Get(b.acquire(&pb.AcquireRequest{RequestId: "1", Path: "/ours"}))(t)
	// The call lasts until the end of the connection or of the session.
	go b.acquire(&pb.AcquireRequest{RequestId: "2", Path: "/theirs"})
	synctest.Wait()
	if n := b.inLine("/theirs"); n != 2 {
		t.Fatalf("%d contenders", n)
	}
	return b
}

func (b *bereaved) inLine(path string) int { return len(zktest.Layout(b.zk, path)) }

func (b *bereaved) open() bool { return slices.Contains(b.zk.Sessions(), b.id) }

// interrupt breaks the session's connection, so the plugin has messages for its host.
func (b *bereaved) interrupt() {
	b.zk.CloseConnection(b.id)
	time.Sleep(time.Second) // until it is connected again
	b.holds(true)
}

func (b *bereaved) expire() {
	b.zk.ExpireSession(b.id)
	time.Sleep(time.Second) // until the plugin receives that
}

// holds checks whether the host's session exists, and that the plugin ends if it does not.
func (b *bereaved) holds(want bool) {
	b.Helper()
	synctest.Wait()
	if b.open() != want {
		b.Errorf("the session is open: %v; want %v", !want, want)
	}
	if got := b.inLine("/ours"); (got == 1) != want {
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
		"session":  (*bereaved).expire,
		"after a message that could not be sent": func(b *bereaved) {
			b.interrupt()
			close(b.lifetime)
		},
		"session, after a message that could not be sent": func(b *bereaved) {
			b.interrupt()
			b.expire()
		},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				b := newBereaved(t)
				_ = b.conn.Close()
				b.holds(true)
				if n := b.inLine("/theirs"); n != 1 {
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
	zktest.Bubble(t, func(t *testing.T) {
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
			zktest.Bubble(t, func(t *testing.T) {
				b := newBereaved(t)
				end(b)
				synctest.Wait()
				if b.open() {
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
	zktest.Bubble(t, func(t *testing.T) {
		b := newBereaved(t)
		close(b.lifetime)
		b.holds(true)
		_ = b.conn.Close()
		b.holds(false)
	})
}
