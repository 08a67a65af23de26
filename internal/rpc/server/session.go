package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type sessionService struct {
	pb.UnimplementedSessionServiceServer
	*Server
}

// stream is the lease: see SessionService.Open in session.proto.
type stream = grpc.BidiStreamingServer[pb.OpenRequest, pb.OpenResponse]

// session is one ZooKeeper session and the stream that it depends on.
type session struct {
	handle string
	recipes.Session
	contacts

	ctx         context.Context // ends when the session is on its way out
	cancel      context.CancelCauseFunc
	out         outbox
	tickets     *tickets
	memberships memberships    // of sites in transactions
	tasks       sync.WaitGroup // what runs for the session beside its calls

	taking
	dropping sync.Mutex // held while DropRest runs
}

// errFrozen ends a session whose host sends no beats.
var errFrozen = fmt.Errorf("%w: the host has sent no beat for the session timeout", recipes.ErrPluginLost)

// errShutdown ends the sessions of a plugin that stops. errNoMore is why it opens no
// more: a host that has another plugin, or can launch one, may use that.
var (
	errShutdown = fmt.Errorf("%w: the plugin is shutting down", recipes.ErrPluginLost)
	errNoMore   = fmt.Errorf("open session: %w: %w", recipes.ErrUnavailable, errShutdown)
)

func (s sessionService) Open(st stream) error {
	first, err := st.Recv()
	if err != nil {
		return err
	}
	start := first.GetStart()
	if start == nil {
		return fmt.Errorf("%w: the first message of a session's stream is Start", recipes.ErrInvalid)
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.Done()

	release, err := s.reserve(start.GetResume())
	if err != nil {
		return err
	}
	defer release()
	opened, err := s.open(st.Context(), start)
	if err != nil {
		return err
	}
	ss := s.start(opened, start.GetResume())
	defer s.end(ss)
	return ss.serve(st, s.ticket(ss))
}

// open opens the ZooKeeper session. ctx is the stream's, so that a host that
// goes away, or stops waiting, ends the attempt.
func (s *Server) open(ctx context.Context, start *pb.Start) (recipes.Session, error) {
	timeout := recipes.DefaultOpenTimeout
	if t := start.GetOpenTimeout(); t != nil {
		timeout = t.AsDuration()
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	cfg := wire.Config(start.GetConfig())
	cfg.Logger = s.cfg.Logger.Named("zookeeper")
	opened, err := s.opener(start.GetResume())(ctx, cfg)
	if err != nil && s.ctx.Err() != nil {
		return nil, errNoMore // not the host, nor anybody's deadline, has ended the attempt
	}
	return opened, err
}

// opener opens a new session, or resumes one.
func (s *Server) opener(r *pb.Resume) recipes.Opener {
	if r == nil {
		return s.cfg.Open
	}
	return func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Session, error) {
		return s.resume(ctx, cfg, r)
	}
}

func (s *Server) start(opened recipes.Session, r *pb.Resume) *session {
	ctx, cancel := context.WithCancelCause(s.ctx)
	ss := &session{Session: opened, contacts: contactsOf(opened), ctx: ctx, cancel: cancel, taking: newTaking(r != nil), handle: r.GetSession()}
	ss.out.ready = make(chan struct{}, 1)
	ss.tickets = newTickets(ss, s.cfg.Limits.Grants)
	s.add(ss)
	s.log.Debug("session opened", "session", fmt.Sprintf("%#x", ss.ID()), "timeout", ss.Timeout().String(), "resumed", r != nil)
	return ss
}

// end closes the ZooKeeper session, for whatever reason its stream has ended, and
// waits for all that runs for it.
func (s *Server) end(ss *session) {
	s.remove(ss)
	ss.cancel(recipes.ErrClosed)
	if err := ss.close(); err != nil {
		s.unconfirmed(err)
	}
	ss.tickets.close()
	ss.tasks.Wait()
	s.log.Debug("session ended", "session", fmt.Sprintf("%#x", ss.ID()), "reason", ss.Err())
}

// close ends the ZooKeeper session. If that is not confirmed, the server's timeout
// ends it.
func (ss *session) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return ss.Session.Close(ctx)
}

// serve runs the session's stream. It returns when the stream, the session or the
// plugin ends.
func (ss *session) serve(st stream, ticket []byte) error {
	opened := &pb.Opened{
		Session:   ss.handle,
		SessionId: ss.ID(),
		Timeout:   durationpb.New(ss.Timeout()),
		State:     wire.ToState(ss.State()),
		Ticket:    ticket,
	}
	if err := st.Send(&pb.OpenResponse{Message: &pb.OpenResponse_Opened{Opened: opened}}); err != nil {
		return err
	}
	ss.listen(st)
	return ss.tell(st, wire.State(opened.GetState()))
}

// listen takes the host's beats until the stream ends. The timer for a silent host
// closes the session by itself, because the stream's sender may be stuck: a frozen
// host does not read either.
func (ss *session) listen(st stream) {
	frozen := time.AfterFunc(ss.Timeout(), func() {
		ss.cancel(errFrozen)
		_ = ss.close() // end hears the same
	})
	// serve does not wait for it: Recv returns only after serve has.
	go func() {
		defer frozen.Stop()
		for {
			m, err := st.Recv()
			if err != nil { // io.EOF too: a host that will send no more beats
				ss.cancel(recipes.ErrClosed)
				return
			}
			if b := m.GetBeat(); b != nil && frozen.Reset(ss.Timeout()) {
				ss.out.beat(b.GetNumber())
			}
		}
	}()
}

// tell sends, in order, what changes after the state in Opened. The loss of the
// session comes last.
func (ss *session) tell(st stream, told recipes.State) error {
	events := ss.Events(ss.ctx)
	for {
		select {
		case <-st.Context().Done():
			return st.Context().Err()
		case <-ss.out.ready:
			if err := ss.flush(st); err != nil {
				return err
			}
		case <-ss.Done():
			return ss.tellEnd(st, ss.Err())
		case <-ss.ctx.Done():
			err := ss.tellEnd(st, context.Cause(ss.ctx))
			ss.awaitHost(st)
			return err
		case e, ok := <-events:
			if !ok || e.State == recipes.Lost {
				events = nil // Done and ctx tell
				continue
			}
			if e.State == told {
				continue
			}
			told = e.State
			if err := ss.sendState(st, e); err != nil {
				return err
			}
		}
	}
}

// tellEnd sends the last message: the host is told before the session is closed in
// ZooKeeper and others can be granted what it held.
func (ss *session) tellEnd(st stream, reason error) error {
	if err := ss.flush(st); err != nil {
		return err
	}
	return ss.sendState(st, recipes.Event{State: recipes.Lost, Reason: reason})
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

func (ss *session) sendState(st stream, e recipes.Event) error {
	change := &pb.StateChanged{State: wire.ToState(e.State), Reason: wire.ToFailure(e.Reason)}
	return st.Send(&pb.OpenResponse{Message: &pb.OpenResponse_StateChanged{StateChanged: change}})
}

func (ss *session) flush(st stream) error {
	messages, beat := ss.out.take()
	for _, m := range messages {
		if err := st.Send(m); err != nil {
			return err
		}
	}
	if beat == 0 {
		return nil
	}
	age := func(contact func() time.Time) *durationpb.Duration { return durationpb.New(time.Since(contact())) }
	echo := &pb.BeatEcho{Number: beat, ContactAge: age(ss.last), KnownContactAge: age(ss.known), Timeout: durationpb.New(ss.Timeout())}
	return st.Send(&pb.OpenResponse{Message: &pb.OpenResponse_BeatEcho{BeatEcho: echo}})
}

func (s sessionService) Close(ctx context.Context, r *pb.CloseRequest) (*pb.CloseResponse, error) {
	ss, err := s.session(r.GetSession())
	if err == nil {
		err = ss.Session.Close(ctx)
	}
	return &pb.CloseResponse{}, err
}

func (s sessionService) Stats(ctx context.Context, r *pb.StatsRequest) (*pb.StatsResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	stats, err := ss.Session.Stats(ctx)
	return wire.ToStats(stats), err
}
