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
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
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

// An answer is never taken for a lost connection.
func TestEveryAnswerOfTheServerHasASentinel(t *testing.T) {
	for code, sentinel := range sentinels {
		if err := fmt.Errorf("read /x: %w", code); !errors.Is(err, sentinel) || errors.Is(err, recipes.ErrInternal) || Lost(err) {
			t.Errorf("%d became %v", int32(code), err)
		}
	}
	if err := error(Code(-126)); !errors.Is(err, recipes.ErrInternal) || Lost(err) {
		t.Errorf("an answer without a name became %v", err)
	}
}

// CURATOR-79: anything that is not the server's answer leaves the outcome open.
func TestWhateverIsNotAnAnswerIsALostConnection(t *testing.T) {
	for _, err := range []error{errClosed, ErrNotSent, &lostError{net.ErrClosed}, fmt.Errorf("send: %w", &lostError{errors.New("broken pipe")})} {
		if !Lost(err) {
			t.Errorf("%v is taken for an answer", err)
		}
	}
}

// The last requests before a long wait would keep their replies for as long.
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
func TestTheWireKeepsTheZxidForItself(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := newWire(t)
	w.lastZxid.Store(7)
	c, err := newConn(client, w, time.Now().Add(watchdog.Patience), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	go c.Write(connectRequest(1000, 5, make([]byte, PasswordSize)))
	sent := make([]byte, lengthSize+4+8+4+8+4+PasswordSize)
	if _, err := io.ReadFull(server, sent); err != nil {
		t.Fatal(err)
	}
	if zxid := binary.BigEndian.Uint64(sent[connectZxidAt:]); zxid != 7 {
		t.Errorf("lastZxidSeen is %d", zxid)
	}
	header := binary.BigEndian.AppendUint64([]byte{0, 0, 0, 1}, 99)
	handshake, reply := frame(36, accepting(make([]byte, PasswordSize))...), frame(replyHeaderSize, append(header, 0, 0, 0, 0)...)
	go server.Write(append(handshake, reply...))
	got := make([]byte, len(handshake)+len(reply))
	if _, err := io.ReadFull(iotest.OneByteReader(c), got); err != nil {
		t.Fatal(err)
	}
	if zxid := binary.BigEndian.Uint64(got[len(handshake)+lengthSize+4:]); zxid != 0 {
		t.Errorf("go-zookeeper is shown zxid %d", zxid)
	}
	if last := w.LastZxid(); last != 99 {
		t.Errorf("the wire remembers %d", last)
	}
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
		w := newWire(t)
		w.Fired = func(Event, string) {}
		c, err := newConn(client, w, time.Now().Add(watchdog.Patience), func(error) {})
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
