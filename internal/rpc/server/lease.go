package server

import (
	"context"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// serve runs the session's stream, until the stream, the session or the plugin ends:
// see outbox.over. While nothing happens one goroutine waits, for the host. A thousand
// sessions that wait for their turn are a common plugin, and a goroutine takes 4 KiB or
// more.
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
	ss.tell(st, wire.State(opened.GetState()))
}

// listen takes the host's beats until the stream ends. The timer for a silent host
// closes the session by itself, because the stream's sender may be stuck: a frozen
// host does not read either.
func (ss *session) listen(st stream) {
	frozen := time.AfterFunc(ss.Timeout(), func() { ss.giveUp(errFrozen) })
	// Nobody waits for it: Recv returns only after Open has.
	go func() {
		for {
			m, err := st.Recv()
			if err != nil {
				frozen.Stop()
				if err != io.EOF { // which says that the host will send no more beats
					ss.outlive(st)
				}
				ss.cancel(recipes.ErrClosed)
				return
			}
			if b := m.GetBeat(); b != nil && frozen.Reset(ss.Timeout()) {
				ss.out.beat(b.GetNumber())
			}
		}
	}()
}

// giveUp ends a session whose stream may be stuck.
func (ss *session) giveUp(reason error) {
	ss.cancel(reason)
	_ = ss.close() // end hears the same
}

// tell has what changes after the state in Opened sent, in order. The loss of the
// session comes last.
func (ss *session) tell(st stream, told recipes.State) {
	context.AfterFunc(ss.ctx, func() {
		ss.out.end(lostBy(context.Cause(ss.ctx)), func() { ss.awaitHost(st) })
	})
	ss.notify(func(e recipes.Event) {
		switch {
		case e.State == recipes.Lost && ss.ctx.Err() != nil: // which says why
		case e.State == recipes.Lost:
			ss.out.end(lostBy(e.Reason), func() {})
		case e.State != told:
			told = e.State
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

// lostBy is the last message. The host is told before the session is closed in
// ZooKeeper and others can be granted what it held.
func lostBy(reason error) *pb.OpenResponse {
	return changed(recipes.Event{State: recipes.Lost, Reason: reason})
}

func changed(e recipes.Event) *pb.OpenResponse {
	change := &pb.StateChanged{State: wire.ToState(e.State), Reason: wire.ToFailure(e.Reason)}
	return &pb.OpenResponse{Message: &pb.OpenResponse_StateChanged{StateChanged: change}}
}

// awaitHost gives the host time to hear the last message of a session that has not
// ended in ZooKeeper yet. The host hangs up when it has heard it.
func (ss *session) awaitHost(st stream) {
	patience := time.NewTimer(hearTimeout)
	defer patience.Stop()
	select {
	case <-st.Context().Done():
	case <-patience.C:
	}
}

// echo answers a beat, and all beats before it.
func (ss *session) echo(beat uint64) *pb.OpenResponse {
	age := func(contact func() time.Time) *durationpb.Duration { return durationpb.New(time.Since(contact())) }
	echo := &pb.BeatEcho{Number: beat, ContactAge: age(ss.last), KnownContactAge: age(ss.known), Timeout: durationpb.New(ss.Timeout())}
	return &pb.OpenResponse{Message: &pb.OpenResponse_BeatEcho{BeatEcho: echo}}
}
