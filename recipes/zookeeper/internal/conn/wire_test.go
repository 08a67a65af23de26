package conn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

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

// An answer is never mistaken for a lost connection.
func TestEveryAnswerOfTheServerHasASentinel(t *testing.T) {
	for code, sentinel := range sentinels {
		if err := fmt.Errorf("read /x: %w", code); !errors.Is(err, sentinel) || errors.Is(err, recipes.ErrInternal) || Lost(err) {
			t.Errorf("%d became %v", int32(code), err)
		}
	}
	for code, sentinel := range map[Code]error{-124: recipes.ErrSASLRequired, -125: recipes.ErrQuota, -127: recipes.ErrThrottled} {
		if !errors.Is(code, sentinel) { // go-zookeeper has no errors for these
			t.Errorf("%d became %v", int32(code), code)
		}
	}
	if err := error(Code(-126)); !errors.Is(err, recipes.ErrInternal) || Lost(err) {
		t.Errorf("an answer without a name became %v", err)
	}
}

// CURATOR-79: an error that is not the server's answer leaves the outcome unknown.
func TestAnErrorThatIsNoAnswerIsALostConnection(t *testing.T) {
	for _, err := range []error{errClosed, ErrNotSent, &lostError{net.ErrClosed}, fmt.Errorf("send: %w", &lostError{errors.New("broken pipe")})} {
		if !Lost(err) {
			t.Errorf("%v is taken for an answer", err)
		}
	}
}

// If replies were kept, the last requests before a long wait would retain theirs until the wait
// ends.
func TestNothingIsKeptOfAnAnsweredRequest(t *testing.T) {
	c := &Conn{wire: newWire(t)}
	for _, xid := range []int32{1, 2, 3} {
		c.note(sent{xid: xid, op: opExists, at: time.Now(), batch: new(Batch)})
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
func TestTheWireHidesTheZxid(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := newWire(t)
	w.lastZxid.Store(7)
	c := over(t, client, w, time.Now().Add(watchdog.Patience), func(error) {})
	defer c.Close()

	go c.Write(connectRequest(1000, sessionID, make([]byte, PasswordSize)))
	sent := make([]byte, lengthSize+4+8+4+8+4+PasswordSize)
	must.Get(io.ReadFull(server, sent))(t)
	if zxid := binary.BigEndian.Uint64(sent[connectZxidAt:]); zxid != 7 {
		t.Errorf("lastZxidSeen is %d", zxid)
	}
	header := binary.BigEndian.AppendUint64([]byte{0, 0, 0, 1}, 99)
	handshake, reply := frame(36, accepting(password)...), frame(replyHeaderSize, append(header, 0, 0, 0, 0)...)
	go func() {
		server.Write(handshake)
		skipFrame(server)
		server.Write(reply)
	}()
	got := make([]byte, len(handshake)+len(reply))
	must.Get(io.ReadFull(iotest.OneByteReader(c), got[:len(handshake)]))(t)
	must.Get(c.Write(frame(8, 0, 0, 0, 1, 0, 0, 0, opExists)))(t)
	must.Get(io.ReadFull(iotest.OneByteReader(c), got[len(handshake):]))(t)
	if zxid := binary.BigEndian.Uint64(got[len(handshake)+lengthSize+4:]); zxid != 0 {
		t.Errorf("go-zookeeper is shown zxid %d", zxid)
	}
	if last := w.LastZxid(); last != 99 {
		t.Errorf("the wire remembers %d", last)
	}
}

// FuzzWireReads sends arbitrary bytes to a connection, as a server or a stranger may.
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
		w := newWire(t)
		w.Fired = func(Event, string) {}
		c := over(t, client, w, time.Now().Add(watchdog.Patience), func(error) {})
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

// Sessions that start at the same time must not draw the same numbers.
func TestEachSessionDrawsItsOwnNumbers(t *testing.T) {
	a, b := newRandomSource(), newRandomSource()
	for range 10 {
		if a.below(time.Hour) != b.below(time.Hour) {
			return
		}
	}
	t.Error("two sessions draw the same")
}

// A server before 3.4 has no byte for read-only mode in its answer to the handshake.
func TestThePasswordIsTheAnswersLastPart(t *testing.T) {
	for _, more := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(t, newWire(t))
			s.send(connectRequest(int32(scriptTimeout.Milliseconds()), 0, make([]byte, PasswordSize)))
			s.receive(append(accepting(password), make([]byte, more)...))
			if password := s.wire.Password(); string(password) != "0123456789abcdef" {
				t.Errorf("with %d bytes behind it the password is %v", more, password)
			}
		})
	}
}

// The ensemble keeps the timeout that the first server granted, so a larger one does not count,
// neither for the lease nor for go-zookeeper's pings. A smaller one does.
func TestALaterServerCannotRaiseTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		const first = scriptTimeout
		session := int64(0)
		for _, test := range []struct{ granted, want time.Duration }{
			{first, first}, {2 * first, first}, {first / 2, first / 2}, {first, first / 2},
		} {
			s := newScript(t, w)
			s.send(connectRequest(int32(first.Milliseconds()), session, make([]byte, PasswordSize)))
			answer := accepting(password)
			binary.BigEndian.PutUint32(answer[4:], uint32(test.granted.Milliseconds()))
			go s.server.Write(frame(int32(len(answer)), answer...))
			shown := make([]byte, lengthSize+len(answer))
			must.Get(io.ReadFull(s.Conn, shown))(t)
			pings := time.Duration(binary.BigEndian.Uint32(shown[lengthSize+4:])) * time.Millisecond
			if got := w.Lease.Timeout(); got != test.want || pings != test.want {
				t.Errorf("granted %v: the timeout is %v, and go-zookeeper gets %v; want %v", test.granted, got, pings, test.want)
			}
			session = w.ID()
		}
	})
}

// An answer without a transaction id does not change the last zxid.
func TestAnAnswerWithoutATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, newWire(t))
		s.handshakeIn(0)
		s.request(xidPing, opPing)
		s.reply(xidPing, 0) // with transaction 7
		s.request(xidPing, opPing)
		body := binary.BigEndian.AppendUint32(nil, 0xfffffffe)
		s.receive(append(body, make([]byte, 12)...))
		if zxid := s.wire.LastZxid(); zxid != 7 {
			t.Errorf("the last transaction is %d; want 7", zxid)
		}
	})
}

// Only a connect request for a new session is replaced by one for the ticket's session.
func TestTheConnectRequestOfAResumedSession(t *testing.T) {
	password := make([]byte, PasswordSize)
	ticket := connectRequest(1, 7, password)
	asksNew, asksAgain, short := connectRequest(2, 0, password), connectRequest(2, 7, password), []byte{1, 2, 3}
	for name, test := range map[string]struct{ resumed, frame, want []byte }{
		"a new session":                         {ticket, asksNew, ticket},
		"the session again":                     {ticket, asksAgain, asksAgain},
		"too short":                             {ticket, short, short},
		"a new session, nothing is resumed":     {nil, asksNew, asksNew},
		"the session again, it was not resumed": {nil, asksAgain, asksAgain},
	} {
		w := newWire(t)
		w.resumed = test.resumed
		if got := w.resuming(test.frame); !bytes.Equal(got, test.want) {
			t.Errorf("%s: %x; want %x", name, got, test.want)
		}
	}
}

// A server's reply may contain any bytes.
func FuzzReply(f *testing.F) {
	var e jute.Encoder
	e.MultiHeader(opSetData, 0)
	e.Bytes = append(e.Bytes, make([]byte, 68)...)
	e.MultiHeader(opDelete, 0)
	e.MultiEnd()
	f.Add(e.Bytes)
	f.Add([]byte("\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x01b"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := Reply{body: body}
		if node, err := r.Node(); err == nil && len(node.Data) > len(body) {
			t.Fatalf("%d bytes of data from %d", len(node.Data), len(body))
		}
		_ = r.Refusal()
		if _, err := r.Stat(); (err == nil) != (len(body) >= 68) {
			t.Fatalf("a record of %d bytes: %v", len(body), err)
		}
		d := jute.Decoder{Bytes: body}
		if names := d.Strings(); d.Err == nil && 4*len(names) > len(body) {
			t.Fatalf("%d names from %d bytes", len(names), len(body))
		}
	})
}
