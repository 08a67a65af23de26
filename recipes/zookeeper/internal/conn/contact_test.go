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

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lease"
)

const scriptTimeout = 10 * time.Second

// script is a connection whose server answers when the test says so.
type script struct {
	*testing.T
	*Conn
	server net.Conn
}

// newWire returns the wire of a session whose callbacks do nothing.
func newWire(t *testing.T) *Wire {
	w, err := New(Config{
		SessionConfig: recipes.SessionConfig{MaxPacket: 1 << 20, Logger: hclog.NewNullLogger()}, Lease: lease.New(time.Now()), Life: context.Background(), Connected: func() {}, Lost: func(error) {},
		Fired: func(Event, string) { t.Error("a watch has fired") },
	})
	must.Do(t, err)
	return w
}

// over returns newConn's result.
func over(t *testing.T, c net.Conn, w *Wire, deadline time.Time, failed func(error)) *Conn {
	t.Helper()
	made := must.Get(newConn(c, w, deadline, failed))(t)
	return made
}

func newScript(t *testing.T, w *Wire) script {
	client, server := net.Pipe()
	c := over(t, client, w, time.Now().Add(time.Hour), func(err error) { t.Errorf("failed: %v", err) })
	t.Cleanup(func() { client.Close(); server.Close() })
	go io.Copy(io.Discard, server)
	return script{t, c, server}
}

// send sends a request and returns the time.
func (s script) send(frame []byte) time.Time {
	s.Helper()
	at := time.Now()
	must.Get(s.Write(frame))(s)
	return at
}

func (s script) request(xid, op int32) time.Time {
	s.Helper()
	frame := binary.BigEndian.AppendUint32(nil, 8)
	frame = binary.BigEndian.AppendUint32(frame, uint32(xid))
	return s.send(binary.BigEndian.AppendUint32(frame, uint32(op)))
}

// receive makes the server send a frame.
func (s script) receive(body []byte) {
	s.Helper()
	go s.server.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	must.Do(s, s.nextFrame())
	must.Get(io.CopyN(io.Discard, s.Conn, int64(lengthSize+len(body))))(s)
}

func (s script) reply(xid, code int32) {
	s.Helper()
	body := binary.BigEndian.AppendUint32(nil, uint32(xid))
	body = binary.BigEndian.AppendUint64(body, 7) // zxid
	s.receive(binary.BigEndian.AppendUint32(body, uint32(code)))
}

// handshakeIn completes a handshake that takes d, and returns the time at which the handshake
// was sent.
func (s script) handshakeIn(d time.Duration) time.Time {
	s.Helper()
	at := s.send(connectRequest(int32(scriptTimeout.Milliseconds()), 0, make([]byte, PasswordSize)))
	time.Sleep(d)
	s.receive(accepting(password))
	return at
}

// sessionID and password are those of a ZooKeeper's session.
const sessionID = 1<<56 | 42

var password = []byte("0123456789abcdef")

// accepting returns a server's answer to a connect request, without its length.
func accepting(password []byte) []byte {
	body := binary.BigEndian.AppendUint32(nil, 0)
	body = binary.BigEndian.AppendUint32(body, uint32(scriptTimeout.Milliseconds()))
	body = binary.BigEndian.AppendUint64(body, sessionID)
	body = binary.BigEndian.AppendUint32(body, PasswordSize)
	return append(body, password...)
}

// counts checks the contacts from which the session's deadline counts.
func (s script) counts(what string, contact, known time.Time) {
	s.Helper()
	if got := s.wire.Lease.LastContact(); !got.Equal(contact) {
		s.Errorf("%s: the last contact is of %v; want %v", what, got, contact)
	}
	if got := s.wire.Lease.KnownContact(); !got.Equal(known) {
		s.Errorf("%s: the leader is known to have that of %v; want %v", what, got, known)
	}
}

// The server may have received a request as early as it was sent, so a contact counts from
// there.
func TestAContactCountsFromTheSendingOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, newWire(t))
		time.Sleep(time.Second)
		began := s.handshakeIn(2 * time.Second)
		s.counts("handshake", began, began)

		time.Sleep(time.Second)
		ping := s.request(xidPing, opPing)
		time.Sleep(3 * time.Second)
		s.reply(xidPing, 0)
		s.counts("ping", ping, began)

		time.Sleep(scriptTimeout / 3) // the ping is old enough
		var sync time.Time
		for xid := range int32(2) {
			sync = s.request(1+xid, opSync)
			time.Sleep(2 * time.Second)
			s.reply(1+xid, 0)
		}
		s.counts("two syncs", sync, ping)
	})
}

// A server that has not accepted the credentials does not keep the session alive, and go-zookeeper
// gets no byte of its handshake. A refusal ends the session.
func TestAConnectionCountsWhenItsCredentialsAreAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		answer     []byte // the header of the reply
		want, lost error
	}{
		"accepted":        {make([]byte, replyHeaderSize), nil, nil},
		"refused":         {append(make([]byte, 12), 0xff, 0xff, 0xff, 0x8d), recipes.ErrAuthFailed, recipes.ErrAuthFailed},
		"another request": {append([]byte{0, 0, 0, 9}, make([]byte, 12)...), jute.ErrMalformed, nil},
		"hung up":         {nil, io.EOF, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				defer client.Close()
				defer server.Close()
				w, start := newWire(t), time.Now()
				var lost error
				w.Lost = func(err error) { lost = err }
				w.Digest = &recipes.Digest{User: "u", Password: "s3cret"}
				c := over(t, client, w, start.Add(time.Hour), func(error) {})
				go func() {
					if skipFrame(server) != nil {
						return
					}
					server.Write(frame(36, accepting(password)...))
					sent := make([]byte, lengthSize+8+4+10+4+8)
					if _, err := io.ReadFull(server, sent); err != nil || string(sent[len(sent)-8:]) != "u:s3cret" {
						t.Errorf("sent %q (%v)", sent, err)
					}
					if test.answer == nil {
						server.Close()
						return
					}
					server.Write(frame(replyHeaderSize, test.answer...))
				}()
				time.Sleep(time.Second)
				began := time.Now()
				must.Get(c.Write(connectRequest(int32(scriptTimeout.Milliseconds()), 0, make([]byte, PasswordSize))))(t)
				n, err := c.Read(make([]byte, 100))
				if (n == 0) == (test.want == nil) || !errors.Is(err, test.want) || err != nil && strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%d bytes, %v; want %v", n, err, test.want)
				}
				if !errors.Is(lost, test.lost) || (lost == nil) != (test.lost == nil) {
					t.Errorf("lost with %v; want %v", lost, test.lost)
				}
				contact := start
				if test.want == nil {
					contact = began
				}
				if c.established.Load() != (test.want == nil) || !w.Lease.LastContact().Equal(contact) {
					t.Errorf("established: %t; contact after %v", c.established.Load(), w.Lease.LastContact().Sub(start))
				}
			})
		})
	}
}

// An answer without an error to a request that a follower forwards to its leader is a proof.
func TestWhichAnswersAreProofs(t *testing.T) {
	for name, test := range map[string]struct {
		ops   [2]int32
		code  int32
		known bool
	}{
		"two syncs":                           {[2]int32{opSync, opSync}, 0, true},
		"two transactions":                    {[2]int32{opCreate, opMulti}, 0, true},
		"two refusals, maybe of the follower": {[2]int32{opSync, opCreate}, -101, false},
		"two reads":                           {[2]int32{opGetData, opExists}, 0, false},
		"pings":                               {[2]int32{opPing, opPing}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, newWire(t))
				s.handshakeIn(0)
				time.Sleep(time.Second)
				first := s.request(xidPing, opPing)
				s.reply(xidPing, 0)
				time.Sleep(scriptTimeout / 3) // the ping is old enough
				for i, op := range test.ops {
					s.request(int32(1+i), op)
					s.reply(int32(1+i), test.code)
				}
				if known := !s.wire.Lease.KnownContact().Before(first); known != test.known {
					t.Errorf("known: %v", known)
				}
			})
		})
	}
}
