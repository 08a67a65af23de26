package server

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// serve starts the session's stream. outbox.over reports the end of the stream, the session or
// the plugin. An idle session has one goroutine besides Open's; it waits for the host. Plugins
// commonly have a thousand waiting sessions, and a goroutine takes 4 KiB or more.
func (ss *session) serve(st stream, resumeTicket []byte) {
	ss.out.start(st.Send, ss.echo, func() { ss.giveUp(errUnread) }, ss.tasks.Go)
	stats, _ := ss.Stats(ss.ctx) // sends nothing; on error the kind is unknown
	opened := &pb.Opened{
		Session:   ss.handle,
		SessionId: ss.ID(),
		Timeout:   durationpb.New(ss.Timeout()),
		State:     wire.ToState(ss.State()),
		Ticket:    resumeTicket,
		Server:    string(stats.Server),
	}
	ss.out.put(&pb.OpenResponse{Message: &pb.OpenResponse_Opened{Opened: opened}})
	ss.listen(st)
	ss.report(st, wire.State(opened.GetState()))
}

// listen reads the host's heartbeats until the stream ends. The timer for a silent host
// closes the session itself, because the stream's sender may be blocked: a frozen host does
// not read either.
func (ss *session) listen(st stream) {
	frozen := time.AfterFunc(ss.Timeout(), func() { ss.giveUp(errFrozen) })
	// No goroutine waits for the end of this one: Recv may return only after Open has.
	go func() {
		for {
			m, err := st.Recv()
			if err != nil {
				frozen.Stop()
				if err != io.EOF { // EOF only means that the host sends no more heartbeats
					ss.awaitLifetime(st)
				}
				ss.cancel(recipes.ErrClosed)
				return
			}
			if b := m.GetBeat(); b != nil && frozen.Reset(ss.Timeout()) {
				ss.out.heartbeat(b.GetNumber())
			}
		}
	}()
}

// giveUp ends a session whose stream may be blocked.
func (ss *session) giveUp(reason error) {
	ss.cancel(reason)
	_ = ss.close() // Server.end closes it again, and gets the same error
}

// report sends the changes of the session's state since Opened, in order. The loss of the
// session comes last.
func (ss *session) report(st stream, reported recipes.State) {
	context.AfterFunc(ss.ctx, func() {
		ss.out.end(lostBy(context.Cause(ss.ctx)), func() { ss.awaitHost(st) })
	})
	ss.notify(func(e recipes.Event) {
		switch {
		case e.State == recipes.Lost && ss.ctx.Err() != nil: // AfterFunc above reports the cause
		case e.State == recipes.Lost:
			ss.out.end(lostBy(e.Reason), func() {})
		case e.State != reported:
			reported = e.State
			ss.out.change(changed(e))
		}
	})
}

// notify calls f for each event of the session, one at a time.
func (ss *session) notify(f func(recipes.Event)) {
	if s, ok := ss.Client.(interface{ Notify(func(recipes.Event)) }); ok {
		s.Notify(f)
		return
	}
	events := ss.Events(ss.ctx)
	ss.tasks.Go(func() {
		for e := range events {
			f(e)
		}
	})
}

// lostBy returns the stream's last message. It is sent before the session is closed in
// ZooKeeper: after the close, other clients can be granted what the session held.
func lostBy(reason error) *pb.OpenResponse {
	return changed(recipes.Event{State: recipes.Lost, Reason: reason})
}

func changed(e recipes.Event) *pb.OpenResponse {
	change := &pb.StateChanged{State: wire.ToState(e.State), Reason: wire.ToFailure(e.Reason)}
	return &pb.OpenResponse{Message: &pb.OpenResponse_StateChanged{StateChanged: change}}
}

// awaitHost gives the host time to read the last message of a session that has not ended in
// ZooKeeper yet. The host closes the stream when it has read it.
func (ss *session) awaitHost(st stream) {
	patience := time.NewTimer(lastReadTimeout)
	defer patience.Stop()
	select {
	case <-st.Context().Done():
	case <-patience.C:
	}
}

// echo answers a heartbeat, and all heartbeats before it.
func (ss *session) echo(heartbeat uint64) *pb.OpenResponse {
	age := func(contact func() time.Time) *durationpb.Duration { return durationpb.New(time.Since(contact())) }
	echo := &pb.BeatEcho{Number: heartbeat, ContactAge: age(ss.last), KnownContactAge: age(ss.known), Timeout: durationpb.New(ss.Timeout())}
	return &pb.OpenResponse{Message: &pb.OpenResponse_BeatEcho{BeatEcho: echo}}
}

// contacts return when the session was last in contact with ZooKeeper.
type contacts struct {
	last  func() time.Time // no later than the sending of the last answered request or ping
	known func() time.Time // the same for contacts that the leader is known to have received
}

func contactsOf(s recipes.Session) contacts {
	c := contacts{last: (&estimate{session: s}).contact}
	if reported, ok := s.(interface{ LastContact() time.Time }); ok {
		c.last = reported.LastContact
	}
	c.known = c.last
	if reported, ok := s.(interface{ KnownContact() time.Time }); ok {
		c.known = reported.KnownContact
	}
	return c
}

// estimate assumes that a connected session had its last contact two thirds of its timeout
// ago: see Config.Open.
type estimate struct {
	session recipes.Session
	mu      sync.Mutex
	last    time.Time
}

func (g *estimate) contact() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session.State() == recipes.Connected || g.last.IsZero() {
		g.last = time.Now().Add(-g.session.Timeout() * 2 / 3)
	}
	return g.last
}

// Connections returns credentials with which a session can detect that its host has died: see
// Config.Lifetime. A live host ends the stream and keeps the connection. When a host dies,
// the operating system closes the connection, and gRPC then ends the streams.
//
// If the TLS handshake of a connection has selected carry.Protocol, serve gets the connection, in
// a goroutine of its own, and gRPC does not: see ServeCalls.
func Connections(c credentials.TransportCredentials, serve func(net.Conn)) credentials.TransportCredentials {
	return connections{c, serve}
}

type connections struct {
	credentials.TransportCredentials
	serve func(net.Conn)
}

func (c connections) Clone() credentials.TransportCredentials {
	return connections{c.TransportCredentials.Clone(), c.serve}
}

// ServerHandshake implements TransportCredentials. gRPC itself removes the deadline that it has
// set for the handshake.
func (c connections) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return conn, info, err
	}
	if t, ok := info.(credentials.TLSInfo); ok && t.State.NegotiatedProtocol == carry.Protocol {
		go c.serve(carry.Abrupt(conn, raw))
		return nil, nil, credentials.ErrConnDispatched
	}
	noted := &connection{Conn: conn}
	return noted, authInfo{info, noted}, nil
}

type authInfo struct {
	credentials.AuthInfo
	connection *connection
}

type connection struct {
	net.Conn
	ended atomic.Bool
}

func (c *connection) Read(b []byte) (int, error)  { return c.note(c.Conn.Read(b)) }
func (c *connection) Write(b []byte) (int, error) { return c.note(c.Conn.Write(b)) }

func (c *connection) Close() error {
	c.ended.Store(true)
	return c.Conn.Close()
}

func (c *connection) note(n int, err error) (int, error) {
	if err != nil {
		c.ended.Store(true)
	}
	return n, err
}

// awaitLifetime is called when the session's stream has ended. If the connection has ended too, the
// host has died, and awaitLifetime waits for the end of the lifetime or of the session. What needs the
// host's code ends before. Otherwise it returns at once.
func (ss *session) awaitLifetime(st stream) {
	p, _ := peer.FromContext(st.Context())
	if p == nil || ss.lifetime == nil {
		return
	}
	if info, ok := p.AuthInfo.(authInfo); !ok || !info.connection.ended.Load() {
		return
	}
	ss.acquisitions.hostDied()
	select {
	case <-ss.lifetime:
	case <-ss.Client.Done():
	case <-ss.ctx.Done():
	}
}
