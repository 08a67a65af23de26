package session

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

const (
	xidAuth       = -4
	authRefused   = -115
	scriptTimeout = 10 * time.Second
)

// script is a connection whose server answers when the test says so.
type script struct {
	*testing.T
	*conn
	server net.Conn
}

func newScript(t *testing.T, w *wire) script {
	client, server := net.Pipe()
	c, err := newConn(client, w, time.Now().Add(time.Hour), func(err error) { t.Errorf("failed: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	go io.Copy(io.Discard, server)
	return script{t, c, server}
}

// send sends a request and returns when.
func (s script) send(frame []byte) time.Duration {
	s.Helper()
	at := s.wire.offset(time.Now())
	if _, err := s.Write(frame); err != nil {
		s.Fatal(err)
	}
	return at
}

func (s script) request(xid, op int32) time.Duration {
	s.Helper()
	frame := binary.BigEndian.AppendUint32(nil, 8)
	frame = binary.BigEndian.AppendUint32(frame, uint32(xid))
	return s.send(binary.BigEndian.AppendUint32(frame, uint32(op)))
}

// receive has the server send a frame.
func (s script) receive(body []byte) {
	s.Helper()
	go s.server.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	if err := s.nextFrame(); err != nil {
		s.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, s.conn, int64(lengthSize+len(body))); err != nil {
		s.Fatal(err)
	}
}

func (s script) reply(xid, code int32) {
	s.Helper()
	body := binary.BigEndian.AppendUint32(nil, uint32(xid))
	body = binary.BigEndian.AppendUint64(body, 7) // zxid
	s.receive(binary.BigEndian.AppendUint32(body, uint32(code)))
}

// handshakeIn has the handshake take so long, and returns when it was sent.
func (s script) handshakeIn(d time.Duration) time.Duration {
	s.Helper()
	at := s.send(connectRequest(int32(scriptTimeout.Milliseconds()), 0, make([]byte, passwordSize)))
	time.Sleep(d)
	body := binary.BigEndian.AppendUint32(nil, 0)
	body = binary.BigEndian.AppendUint32(body, uint32(scriptTimeout.Milliseconds()))
	body = binary.BigEndian.AppendUint64(body, 42) // session id
	body = binary.BigEndian.AppendUint32(body, passwordSize)
	s.receive(append(body, make([]byte, passwordSize)...))
	return at
}

// counts checks from when the session's deadline counts.
func (s script) counts(what string, contact, known time.Duration) {
	s.Helper()
	if got := time.Duration(s.wire.contact.Load()); got != contact {
		s.Errorf("%s: the last contact is of %v; want %v", what, got, contact)
	}
	if got := time.Duration(s.wire.known.Load()); got != known {
		s.Errorf("%s: the leader is known to have that of %v; want %v", what, got, known)
	}
}

// A server may have heard a request as early as it was sent. From then on it counts.
func TestAContactCountsFromTheSendingOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, newWire(nil))
		time.Sleep(time.Second)
		began := s.handshakeIn(2 * time.Second)
		s.counts("handshake", began, began)

		time.Sleep(time.Second)
		ping := s.request(xidPing, opPing)
		time.Sleep(3 * time.Second)
		s.reply(xidPing, 0)
		s.counts("ping", ping, began)

		time.Sleep(scriptTimeout / 3) // the ping is old enough
		var sync time.Duration
		for xid := range int32(2) {
			sync = s.request(1+xid, opSync)
			time.Sleep(2 * time.Second)
			s.reply(1+xid, 0)
		}
		s.counts("two syncs", sync, ping)
	})
}

// A server that has not accepted the credentials keeps no session alive, however much it
// answers.
func TestAConnectionCountsWhenItsCredentialsAreAccepted(t *testing.T) {
	for _, accepted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire(nil)
			w.reauth.Store(true)
			var told []bool
			w.authReplied = func(accepted bool) { told = append(told, accepted) }
			s := newScript(t, w)
			time.Sleep(time.Second)
			began := s.handshakeIn(time.Second)
			s.counts("handshake", 0, 0)
			s.request(xidPing, opPing)
			s.reply(xidPing, 0)
			s.counts("ping", 0, 0)

			auth, code := s.request(xidAuth, opAuth), int32(0)
			if !accepted {
				code = authRefused
			}
			time.Sleep(time.Second)
			s.reply(xidAuth, code)
			if len(told) != 1 || told[0] != accepted {
				t.Errorf("told %v; want %v", told, accepted)
			}
			if !accepted {
				s.counts("refusal", 0, 0)
			} else {
				s.counts("acceptance", auth, began)
			}
			ping := s.request(xidPing, opPing)
			s.reply(xidPing, 0)
			if !accepted {
				s.counts("ping after the refusal", 0, 0)
			} else {
				s.counts("ping after the acceptance", ping, began)
			}
		})
	}
}
