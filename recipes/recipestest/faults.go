package recipestest

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"slices"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// listen returns a relay for one session. It connects to any of the servers.
func (f *fixture) listen() *relay.Relay {
	f.Helper()
	first := rand.IntN(len(f.servers))
	r := must.Get(relay.Listen(slices.Concat(f.servers[first:], f.servers[:first]), nil))(f)
	f.Cleanup(r.Cut)
	return r
}

// relay returns the relay of a session that open has opened.
func (f *fixture) relay(s recipes.Session) *relay.Relay {
	f.Helper()
	r, ok := f.relays.Load(s.ID())
	if !ok {
		f.Fatalf("session %#x was not opened through a relay", s.ID())
	}
	return r.(*relay.Relay)
}

// sever cuts the session's connection and keeps it cut. It returns when the session is
// suspended.
func (f *fixture) sever(s recipes.Session) {
	f.Helper()
	f.relay(s).Refuse()
	f.awaitState(s, recipes.Suspended)
}

// reconnect ends the effect of sever. It returns when the session is connected.
func (f *fixture) reconnect(s recipes.Session) {
	f.Helper()
	f.restore(s)
	f.awaitState(s, recipes.Connected)
}

// restore ends what the relay does, after it has ended the connection of the session.
func (f *fixture) restore(s recipes.Session) {
	f.Helper()
	f.needsContinuing()
	f.relay(s).Restore()
}

// lose drops what the relay holds, and lets the session reconnect.
func (f *fixture) lose(s recipes.Session) {
	f.Helper()
	f.relay(s).Drop()
	f.restore(s)
}

// suspended makes a call while the connection is down, and returns its value after the reconnect.
func suspended[T any](f *fixture, s recipes.Session, call func() (T, error)) T {
	f.Helper()
	f.sever(s)
	p := start(f, call)
	p.blocked(f)
	f.reconnect(s)
	return p.must(f)
}

func (f *fixture) awaitState(s recipes.Session, want recipes.State) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	for e := range s.Events(ctx) {
		if e.State == want {
			return
		}
	}
	f.Fatalf("the session is %v; want %v", s.State(), want)
}

// expire has the server end the session, and waits until the session is lost. ClickHouse Keeper does
// not continue it, so there the end of the connection suffices; the server ends it later.
func (f *fixture) expire(s recipes.Session) {
	f.Helper()
	r := f.relay(s)
	r.Refuse()
	if !f.keeper() {
		f.takeOver(s.ID(), r.Greeting())
	}
	r.Restore()
	f.await(s.Done(), "the loss of the session")
}

// takeOver closes a session over a connection of its own. It resumes the session there with the
// password in the server's greeting.
func (f *fixture) takeOver(session int64, greeting []byte) {
	f.Helper()
	f.needsContinuing()
	d := jute.Decoder{Bytes: greeting}
	d.Int32() // length
	d.Int32() // protocol version
	timeout, id, password := d.Int32(), d.Int64(), d.Buffer()
	if d.Err != nil || id != session {
		f.Fatalf("the greeting of session %#x names session %#x (%v)", session, id, d.Err)
	}
	dialer := net.Dialer{}
	conn := must.Get(dialer.DialContext(f.ctx, "tcp", f.servers[0]))(f)
	defer conn.Close()
	defer context.AfterFunc(f.ctx, func() { conn.Close() })()
	// exchange sends one frame and returns the answer.
	exchange := func(request jute.Encoder) []byte {
		f.Helper()
		head := binary.BigEndian.AppendUint32(nil, uint32(len(request.Bytes)))
		must.Get(conn.Write(append(head, request.Bytes...)))(f)
		must.Get(io.ReadFull(conn, head))(f)
		answer := make([]byte, binary.BigEndian.Uint32(head))
		must.Get(io.ReadFull(conn, answer))(f)
		return answer
	}
	var connect jute.Encoder
	connect.Int32(0) // protocol version
	connect.Int64(0) // last zxid seen
	connect.Int32(timeout)
	connect.Int64(session)
	connect.Buffer(password)
	connect.Bool(false) // not read-only
	d = jute.Decoder{Bytes: exchange(connect)}
	d.Int64() // protocol version and timeout
	if id := d.Int64(); id != session {
		f.Fatalf("session %#x was taken over as %#x, %v", session, id, d.Err)
	}
	var closing jute.Encoder
	closing.Int32(1)   // xid
	closing.Int32(-11) // closeSession
	exchange(closing)
}
