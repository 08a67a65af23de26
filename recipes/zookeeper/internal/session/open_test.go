package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// go-zookeeper gives the first bytes of a handshake ten times the receive timeout, and its body
// no limit: one frozen server held the client for a minute.
func TestASilentServerDoesNotHoldTheHandshake(t *testing.T) {
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close() // the kernel accepts, and nothing answers
	srv := embedded(t)
	for range 8 { // the order of servers is random
		s, err := session.Open(zktest.Bounded(t), recipes.SessionConfig{
			Servers:        []string{silent.Addr().String(), srv.Addr()},
			ConnectTimeout: 100 * time.Millisecond,
			SessionTimeout: 10 * time.Second,
		}, nil)
		must.Do(t, err)
		must.Do(t, s.Close(zktest.Bounded(t)))
	}
}

var errNoListener = errors.New("no server listens here")

// met lists how an attempt to reach a server may fail, and the error that Open returns for it.
var met = []struct {
	what  string
	serve func(server net.Conn) // nil: there is no connection
	text  string
}{
	{"refused", nil, errNoListener.Error()},
	{"hung up on", func(server net.Conn) { readFrame(server) }, "the server closed the connection"},
	{"cut off", func(server net.Conn) { readFrame(server); server.Write([]byte{0, 0, 0, 37, 0}) }, "unexpected EOF"},
	{"given no session", func(server net.Conn) { readFrame(server); server.Write(welcome(0, 0)) }, "no session was created (answered: protocol version 0, timeout 0 ms"},
	{"given no timeout", func(server net.Conn) { readFrame(server); server.Write(welcome(0, 7)) }, "a session cannot have this timeout (answered: protocol version 0, timeout 0 ms"},
	{"a stranger", func(server net.Conn) { readFrame(server); io.WriteString(server, "HTTP/1.1 400 Bad Request\r\n\r\n") }, "not a ZooKeeper server"},
}

// welcome is the answer to a connect request, with the timeout in milliseconds.
func welcome(timeout uint32, id uint64) []byte {
	b := append([]byte{0, 0, 0, 36}, make([]byte, 4)...)
	b = binary.BigEndian.AppendUint32(b, timeout)
	b = binary.BigEndian.AppendUint64(b, id)
	return append(append(b, 0, 0, 0, 16), make([]byte, 16)...)
}

// attempts dials with one failure after another, and then hangs or reaches a server.
type attempts struct {
	meets []func(net.Conn)
	srv   *zkserver.Server
	made  atomic.Int32
}

func (a *attempts) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n := int(a.made.Add(1)) - 1
	client, server := net.Pipe()
	switch {
	case n >= len(a.meets) && a.srv != nil:
		go a.srv.ServeConn(server)
	case n >= len(a.meets):
		<-ctx.Done()
		return nil, ctx.Err()
	case a.meets[n] == nil:
		return nil, errNoListener
	default:
		go func() { a.meets[n](server); server.Close() }()
	}
	return client, nil
}

// Open returns the error of the last attempt that has ended, whatever failed earlier.
func TestOpenReturnsTheErrorOfEachAttempt(t *testing.T) {
	var all attempts
	for n := range 2 * len(met) { // in an order in which each failure follows each of its neighbours
		m := met[n*(n/len(met)*2+1)%len(met)]
		all.meets = append(all.meets, m.serve)
		so := attempts{meets: all.meets}
		zktest.Bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := session.Open(ctx, recipes.SessionConfig{Servers: []string{"server"}, ConnectTimeout: time.Hour}, so.dial)
			if !errors.Is(err, recipes.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "last attempt: ") {
				t.Fatalf("attempt %d, %s: %v", n, m.what, err)
			}
			for _, other := range met {
				if strings.Contains(err.Error(), other.text) != (other.what == m.what) {
					t.Errorf("attempt %d was %s: %v", n, m.what, err)
				}
			}
			if int(so.made.Load()) != n+2 { // the last attempt hangs
				t.Errorf("%d attempts were made; want %d", so.made.Load(), n+2)
			}
			time.Sleep(time.Minute) // for go-zookeeper, whose Close waits for a second
		})
	}
}

// Before the first attempt has ended, the error names the servers. The attempt ends with Open.
func TestOpenReportsAnAttemptThatHasNotEnded(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := session.Open(ctx, recipes.SessionConfig{Servers: []string{"server:1", "server:2"}, ConnectTimeout: time.Hour}, new(attempts).dial)
		if !errors.Is(err, recipes.ErrUnavailable) || !strings.Contains(err.Error(), "no attempt has ended yet, of server:1,server:2") {
			t.Error(err)
		}
		if took := time.Since(begun); took > 2*time.Minute {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Minute) // for go-zookeeper, whose Close waits for a second
	})
}

// Whatever has failed, Open succeeds at a server that serves.
func TestOpenContinuesUntilAServerServes(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		a := attempts{srv: srv}
		for _, m := range met {
			a.meets = append(a.meets, m.serve)
		}
		s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}}, a.dial))(t)
		defer closeNow(s)
		if n := s.Counters().Reconnects; int(a.made.Load()) != len(met)+1 || n != 0 {
			t.Errorf("%d attempts and %d reconnects; want %d and none", a.made.Load(), n, len(met)+1)
		}
	})
}
