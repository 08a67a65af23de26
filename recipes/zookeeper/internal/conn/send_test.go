package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
		if _, err := io.ReadFull(server, frames); err != nil {
			t.Fatal(err)
		}
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

// ends checks that f fails, and after which time.
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
