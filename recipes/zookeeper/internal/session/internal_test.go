package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestBackoffStartsAtOnceAndIsBounded(t *testing.T) {
	if d := backoff(0); d != 0 {
		t.Errorf("first attempt after %v", d)
	}
	last := time.Duration(0)
	for n := 1; n < 100; n++ {
		d := backoff(n)
		if d < last || d > maxBackoff || d < firstBackoff {
			t.Errorf("attempt %d after %v, the one before after %v", n, d, last)
		}
		last = d
	}
}

// go-zookeeper hands out server errors that it has no name for as text.
func TestEveryAnswerOfTheServerHasASentinel(t *testing.T) {
	for _, a := range answers {
		if err := answer("read", "/x", a.answer); !errors.Is(err, a.sentinel) {
			t.Errorf("%v became %v", a.answer, err)
		}
		if lostConnection(a.answer) {
			t.Errorf("%v is taken for a lost connection", a.answer)
		}
	}
	unnamed := fmt.Errorf("unknown error: %v", -126)
	if lostConnection(unnamed) {
		t.Error("an answer without a name is taken for a lost connection")
	}
	if err := answer("read", "/x", unnamed); !errors.Is(err, recipes.ErrInternal) {
		t.Errorf("an answer without a name became %v", err)
	}
}

// Whoever looks at the deadline while the handshake is being answered finds a
// timeout, and neither a timer nor a contact.
func TestADeadlineBeforeTheFirstContact(t *testing.T) {
	s := &Session{wire: newWire(nil), ctx: t.Context()}
	s.wire.start = time.Now().Add(-time.Hour)
	s.wire.timeout.Store(int64(time.Second))
	if err := s.Err(); err != nil {
		t.Errorf("lost before it was established: %v", err)
	}
}

// CURATOR-79: anything that is not the server's answer leaves the outcome open.
func TestWhateverIsNotAnAnswerIsALostConnection(t *testing.T) {
	for _, err := range []error{zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrClosing, &connError{net.ErrClosed}, fmt.Errorf("send: %w", &connError{errors.New("broken pipe")})} {
		if !lostConnection(err) {
			t.Errorf("%v is taken for an answer", err)
		}
	}
}

// The last requests before a long wait would keep their replies for as long.
func TestNothingIsKeptOfAnAnsweredRequest(t *testing.T) {
	c := &conn{wire: newWire(nil)}
	for _, xid := range []int32{1, 2, 3} {
		c.note(sent{xid: xid, op: opExists, at: time.Now(), batch: new(batch)})
	}
	for _, xid := range []uint32{2, 1, 3} {
		binary.BigEndian.PutUint32(c.head[lengthSize:], xid)
		c.reply()
	}
	for i, s := range c.pending[:cap(c.pending)] {
		if s.batch != nil {
			t.Errorf("request %d is kept, at %d of %d", s.xid, i, len(c.pending))
		}
	}
}

// go-zookeeper writes lastZxid in one goroutine and reads it in another.
func TestTheWireKeepsTheZxidForItself(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := newWire(nil)
	w.lastZxid.Store(7)
	c, err := newConn(client, w, time.Now().Add(watchdog.Patience), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	request := connectRequest(1000, 5, make([]byte, passwordSize))
	sent := exchange(t, c, server, request)
	if zxid := binary.BigEndian.Uint64(sent[connectZxidAt:]); zxid != 7 {
		t.Errorf("lastZxidSeen is %d", zxid)
	}
	reply := append(binary.BigEndian.AppendUint32(nil, 36), make([]byte, 4)...)
	reply = binary.BigEndian.AppendUint32(reply, 1000)
	reply = binary.BigEndian.AppendUint64(reply, 5)
	reply = binary.BigEndian.AppendUint32(reply, passwordSize)
	reply = append(reply, make([]byte, passwordSize)...)
	receive(t, c, server, reply)

	header := append(binary.BigEndian.AppendUint32(nil, replyHeaderSize), 0, 0, 0, 1)
	header = binary.BigEndian.AppendUint64(header, 99)
	header = append(header, 0, 0, 0, 0)
	got := receive(t, c, server, header)
	if zxid := binary.BigEndian.Uint64(got[lengthSize+4:]); zxid != 0 {
		t.Errorf("go-zookeeper is shown zxid %d", zxid)
	}
	if last := w.lastZxid.Load(); last != 99 {
		t.Errorf("the wire remembers %d", last)
	}
}

func exchange(t *testing.T, c *conn, server net.Conn, frame []byte) []byte {
	t.Helper()
	go c.Write(bytes.Clone(frame))
	got := make([]byte, len(frame))
	if _, err := server.Read(got); err != nil {
		t.Fatal(err)
	}
	return got
}

func receive(t *testing.T, c *conn, server net.Conn, frame []byte) []byte {
	t.Helper()
	go server.Write(bytes.Clone(frame))
	got := make([]byte, 0, len(frame))
	for len(got) < len(frame) {
		part := make([]byte, 7)
		n, err := c.Read(part)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, part[:n]...)
	}
	return got
}

// FuzzWireReads feeds a connection what a server, or a stranger, may send.
func FuzzWireReads(f *testing.F) {
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 36}, 20))
	f.Add(append([]byte{0xff, 0xff, 0xff, 0xff}, make([]byte, 40)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		client, server := net.Pipe()
		go func() {
			server.Write(data)
			server.Close()
		}()
		c, err := newConn(client, newWire(func(zk.EventType, string) {}), time.Now().Add(watchdog.Patience), func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		buf := make([]byte, 64)
		for {
			if _, err := c.Read(buf); err != nil {
				break
			}
		}
		server.Close()
	})
}

// A watch that was set on a connection that has been lost since is not armed,
// though the server has answered: who joins it has to arm it again.
func TestAWatchOfALostConnectionIsNotArmed(t *testing.T) {
	var ws watches
	key := watchKey{path: "/x"}
	w, arm, connection := ws.join(key)
	if !arm {
		t.Fatal("a new watch is armed")
	}
	ws.disconnected()
	ws.settle(key, w, true, connection)
	if _, arm, connection = ws.join(key); !arm {
		t.Error("the watch of the lost connection is taken for armed")
	}
	ws.settle(key, ws.byKey[key], true, connection)
	if _, arm, _ = ws.join(key); arm {
		t.Error("a watch that is armed is set again")
	}
}

// A session whose handshake is being answered has no deadline yet. Whoever asks then
// waits for nothing, and nobody waits for him.
func TestASessionWithoutADeadlineCanBeAsked(t *testing.T) {
	s := new(Session)
	s.checkDeadline()
	if !s.mu.TryLock() {
		t.Error("the session stays locked")
	}
}
