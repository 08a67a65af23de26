package conn

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Sessions that begin together must not draw the same.
func TestEachSessionHasChancesOfItsOwn(t *testing.T) {
	a, b := newChance(), newChance()
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
			s.receive(append(accepting([]byte("0123456789abcdef")), make([]byte, more)...))
			if password := s.wire.Password(); string(password) != "0123456789abcdef" {
				t.Errorf("with %d bytes behind it the password is %v", more, password)
			}
		})
	}
}

// Some answers have no transaction's number. The last one known stays.
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

// What is sent is counted by its kind.
func TestCountersByKind(t *testing.T) {
	var c Counters
	for op, n := range map[int32]int{opPing: 1, opExists: 2, opGetData: 3, opCreate2: 4, opMulti: 5, opSync: 6, opClose: 7} {
		for range n {
			c.request(op)
		}
	}
	s := c.Snapshot()
	if s.Pings != 1 || s.Reads != 5 || s.Writes != 9 {
		t.Errorf("%d pings, %d reads, %d writes; want 1, 5, 9", s.Pings, s.Reads, s.Writes)
	}
	if got, want := fmt.Sprint(s.ByKind), "map[closeSession:7 create2:4 exists:2 getData:3 multi:5 ping:1 sync:6]"; got != want {
		t.Errorf("by kind %s; want %s", got, want)
	}
}

// Only a request for a new session becomes one for the ticket's.
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
