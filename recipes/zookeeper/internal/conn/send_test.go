package conn

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// sends sends one of the session's own requests.
func (c *Conn) sends() (*Batch, error) { return c.Send(Request{op: opExists}) }

// No part of a request is sent before the server has accepted the session, nor after the
// connection was closed. The error says so.
func TestWhatIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, newWire(t))
		not := func(when string) {
			t.Helper()
			for range 2 {
				if _, err := s.sends(); !errors.Is(err, ErrNotSent) {
					t.Errorf("%s: %v", when, err)
				}
			}
		}
		not("before the handshake")
		s.handshakeIn(0)
		if _, err := s.sends(); err != nil {
			t.Errorf("after the handshake: %v", err)
		}
		s.Conn.Close()
		not("after the end")
	})
}

// A follower distinguishes the requests of a session by their numbers.
func TestEachRequestHasItsOwnNumber(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	c := over(t, client, newWire(t), time.Time{}, func(error) {})
	defer c.Close()
	c.rawXid = 1<<30 - 4
	c.established.Store(true)
	c.wire.Lease.SetTimeout(time.Hour)
	seen := make(map[int32]bool)
	for range 3 {
		go c.Send(Request{op: opSync}, Request{op: opExists})
		frames := make([]byte, 2*(lengthSize+8))
		must.Get(io.ReadFull(server, frames))(t)
		for _, at := range []int{lengthSize, 2*lengthSize + 8} {
			xid := int32(binary.BigEndian.Uint32(frames[at:]))
			if seen[xid] || !isRaw(xid) {
				t.Errorf("request %d has the number %d; before it there were %v", len(seen), xid, seen)
			}
			seen[xid] = true
		}
	}
}

// mute is a connection whose writes fail.
type mute struct{ net.Conn }

func (mute) Write([]byte) (int, error) { return 0, errors.New("not today") }

// After a failed write, a part may have been sent, so nothing can follow it. go-zookeeper closes
// the connection by itself. It only logs why a handshake fails.
func TestAConnectionThatCannotBeWrittenTo(t *testing.T) {
	for _, established := range []bool{false, true} {
		client, server := net.Pipe()
		defer server.Close()
		var reported []error
		c := over(t, mute{client}, newWire(t), time.Time{}, func(err error) { reported = append(reported, err) })
		c.established.Store(established)
		if _, err := c.Write(closeRequest()); err == nil || established != (len(reported) == 0) {
			t.Errorf("established %v: %v, reported as %v", established, err, reported)
		}
		if !established {
			if len(reported) != 1 || !strings.Contains(reported[0].Error(), "not today") {
				t.Errorf("a handshake is reported as %v", reported)
			}
		} else if _, err := c.sends(); !Lost(err) || errors.Is(err, ErrNotSent) || !Happened(c.closed) {
			t.Errorf("a request: %v; closed: %v", err, Happened(c.closed))
		}
	}
}

// go-zookeeper cannot close a spared session. Its other requests are sent.
func TestASessionThatIsSparedIsNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, newWire(t))
		s.wire.spared.Store(true)
		s.handshakeIn(0)
		if _, err := s.Write(closeRequest()); !errors.Is(err, errSpared) {
			t.Errorf("a close: %v", err)
		}
		s.request(xidPing, opPing)
		s.reply(xidPing, 0)
		s.wire.spared.Store(false)
		if _, err := s.Write(closeRequest()); err != nil {
			t.Errorf("a close of one that is not spared: %v", err)
		}
	})
}

// ends checks that f fails after that time.
func ends(t *testing.T, what string, after time.Duration, f func() error) {
	t.Helper()
	begun := time.Now()
	if err := f(); err == nil {
		t.Errorf("%s succeeds", what)
	}
	if took := time.Since(begun); took != after {
		t.Errorf("%s ends after %v; want %v", what, took, after)
	}
}

// The session leaves a server that reads nothing or answers nothing: during the handshake at
// the deadline of the handshake, later after two thirds of the session timeout.
func TestASilentServerIsLeft(t *testing.T) {
	const handshake = time.Second
	open := func(t *testing.T) (*Conn, net.Conn) {
		client, server := net.Pipe()
		w := newWire(t)
		w.Lease.SetTimeout(scriptTimeout)                                  // from an earlier connection
		c := over(t, client, w, time.Now().Add(handshake), func(error) {}) // virtual
		t.Cleanup(func() { client.Close(); server.Close() })
		return c, server
	}
	for name, test := range map[string]func(t *testing.T){
		"the request of the handshake": func(t *testing.T) {
			c, _ := open(t)
			ends(t, "it", handshake, func() error {
				_, err := c.Write(connectRequest(1, 0, make([]byte, PasswordSize)))
				return err
			})
		},
		"a part of the handshake's reply": func(t *testing.T) {
			c, server := open(t)
			_ = c.SetReadDeadline(time.Now().Add(time.Hour)) // as go-zookeeper does
			go server.Write([]byte{0, 0, 0, 36, 0})
			ends(t, "it", handshake, func() error { _, err := io.ReadFull(c, make([]byte, 40)); return err })
		},
		"a request": func(t *testing.T) {
			c, _ := open(t)
			c.established.Store(true)
			ends(t, "it", scriptTimeout*2/3, func() error { _, err := c.sends(); return err })
		},
		"a reply": func(t *testing.T) {
			s := newScript(t, newWire(t))
			s.handshakeIn(0)
			s.request(xidPing, opPing)
			s.reply(xidPing, 0)
			ends(t, "it", scriptTimeout*2/3, s.nextFrame)
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}

// A complete answer counts even if the connection has also ended, the session is also lost, or
// the caller has also given up.
func TestAnAnswerCountsMoreThanAnEnd(t *testing.T) {
	w := newWire(t)
	var lose context.CancelFunc
	w.Life, lose = context.WithCancel(t.Context())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c := &Conn{wire: w, closed: make(chan struct{})}
	close(c.closed)
	lose()
	for range 100 { // select would choose each of four by chance
		b := &Batch{Conn: c, answered: make(chan struct{}), replies: make([]Reply, 1)}
		close(b.answered)
		if replies, err := b.Await(ended); len(replies) != 1 || err != nil {
			t.Fatalf("%v, %v", replies, err)
		}
		if !b.Settled() {
			t.Fatal("it is answered and not settled")
		}
	}
	if b := (&Batch{Conn: c, answered: make(chan struct{})}); !b.Settled() {
		t.Error("what is not answered on a connection that has ended is waited for")
	}
}

// The connection of a lost session may remain open for a moment.
func TestALostSessionSendsNothing(t *testing.T) {
	w := newWire(t)
	reason := errors.New("lost")
	life, lose := context.WithCancelCause(t.Context())
	w.Life = life
	lose(reason)
	if _, err := (&Conn{wire: w}).Send(Sync("/")); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
}

// A goroutine that sends by itself never waits: the server reads nothing here, and the session sends
// only while the operating system certainly buffers it. The requests of other goroutines count too.
func TestSendNowWaitsForNothing(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	near := must.Get(net.Dial("tcp", listener.Addr().String()))(t)
	far := must.Get(listener.Accept())(t)
	defer far.Close()
	w := newWire(t)
	life, lose := context.WithCancel(t.Context())
	w.Life = life
	c := over(t, near, w, time.Time{}, func(error) {})
	defer c.Close()
	sends := func(size int) bool {
		t.Helper()
		b := must.Get(c.SendNow(Request{op: opExists, body: make([]byte, size)}))(t)
		return b != nil
	}
	if sends(0) {
		t.Error("it sends before the handshake")
	}
	c.established.Store(true)
	w.Lease.SetTimeout(time.Hour)
	if sends(buffers) {
		t.Error("it sends a large request")
	}
	if !sends(buffers/2) || sends(buffers/2) || !sends(buffers/4) {
		t.Error("its limit is not that of the bytes without an answer")
	}
	c.mu.Lock()
	for len(c.pending) > 0 {
		c.answered(0)
	}
	c.mu.Unlock()
	c.out.Lock()
	if sends(0) {
		t.Error("it waits for another goroutine")
	}
	c.out.Unlock()
	if !sends(buffers / 2) {
		t.Error("it does not send after the answers")
	}
	w.Identity = "one:password"
	secret := func() bool { b, _ := c.SendNow(Request{op: opExists}.Identified()); return b != nil }
	if secret() {
		t.Error("it sends before the identity")
	}
	if c.identified = true; !secret() {
		t.Error("it does not send after the identity")
	}
	if c.kernel = false; sends(0) {
		t.Error("it sends where nothing is buffered")
	}
	c.kernel = true
	if lose(); sends(0) {
		t.Error("it sends for a lost session")
	}
	if n := len(c.pending); n != 2 {
		t.Errorf("%d requests wait for an answer", n)
	}
	for _, buffers := range []net.Conn{near, tls.Client(near, &tls.Config{})} {
		if !buffered(buffers) {
			t.Errorf("%T is not buffered", buffers)
		}
	}
	if pipe, _ := net.Pipe(); buffered(pipe) {
		t.Error("a pipe is buffered")
	}
}
