package server

import (
	"context"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// serve starts the session's stream. outbox.over reports the end of the stream, the session or
// the plugin. An idle session has one goroutine besides Open's; it waits for the host. Plugins
// commonly have a thousand waiting sessions, and a goroutine takes 4 KiB or more.
func (ss *session) serve(st stream, resumeTicket []byte) {
	ss.out.begin(st.Send, ss.echo, func() { ss.giveUp(errUnread) }, ss.tasks.Go)
	opened := &pb.Opened{
		Session:   ss.handle,
		SessionId: ss.ID(),
		Timeout:   durationpb.New(ss.Timeout()),
		State:     wire.ToState(ss.State()),
		Ticket:    resumeTicket,
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
					ss.outlive(st)
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
