package server

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// stream is the lease: see SessionService.Open in session.proto.
type stream = grpc.BidiStreamingServer[pb.OpenRequest, pb.OpenResponse]

// session is a ZooKeeper session and the stream that it depends on.
type session struct {
	handle string
	recipes.Client
	contacts

	lifetime     <-chan struct{} // Config.Lifetime
	ctx          context.Context // ends when the session begins to end
	cancel       context.CancelCauseFunc
	out          outbox
	acquisitions *acquisitions
	memberships  memberships // sites in transactions
	takes        takes
	tasks        sync.WaitGroup // goroutines of the session besides its calls

	resumption resumption
	dropping   sync.Mutex // held while DropRest runs

	log hclog.Logger // of panics
}

// errFrozen ends a session whose host sends no heartbeats. errUnread ends a session whose host
// does not read.
var (
	errFrozen = fmt.Errorf("%w: the host has sent no heartbeat for the session timeout", recipes.ErrPluginLost)
	errUnread = fmt.Errorf("%w: %w: the host does not read the session's stream: %d MiB wait for it", recipes.ErrPluginLost, recipes.ErrLimit, MaxUnsent>>20)
)

// errShutdown ends the sessions of a plugin that stops. errNoMore refuses further sessions. It
// matches ErrUnavailable, because the host may have, or launch, another plugin.
var (
	errShutdown = fmt.Errorf("%w: the plugin is shutting down", recipes.ErrPluginLost)
	errNoMore   = fmt.Errorf("open session: %w: %w", recipes.ErrUnavailable, errShutdown)
)

// Open only waits for the end in the stream's goroutine. Another goroutine opens the session.
// So the waiting goroutine's stack stays at half of what opening and sending need.
func (s service) Open(st stream) error {
	var ss *session
	var leave func()
	if err := s.inGoroutine("opening a session", func() (err error) { ss, leave, err = s.openSession(st); return err }); err != nil {
		return err
	}
	defer leave()
	defer s.end(ss)
	err := <-ss.out.over
	if err != nil { // sending failed: the host may have died
		ss.awaitLifetime(st)
	}
	return err
}

// openSession opens the session that the stream's first message asks for. The caller calls leave
// when the session has ended.
func (s *Server) openSession(st stream) (ss *session, leave func(), err error) {
	first, err := st.Recv()
	if err != nil {
		return nil, nil, err
	}
	start := first.GetStart()
	if start == nil {
		return nil, nil, fmt.Errorf("%w: the first message of a session's stream must be Start", recipes.ErrInvalid)
	}
	if err := s.countOpen(); err != nil {
		return nil, nil, err
	}
	release := func() {}
	leave = func() { release(); s.running.Done() }
	begun := false
	defer func(leave func()) {
		if begun {
			return
		}
		defer leave()  // even if end panics too
		if ss != nil { // a panic
			ss.out.stop()
			s.end(ss)
		}
	}(leave)
	release, err = s.reserve(start.GetResume())
	if err != nil {
		return nil, nil, err
	}
	opened, err := s.open(st.Context(), start)
	if err != nil {
		return nil, nil, err
	}
	ss = s.start(opened, start.GetResume())
	ss.serve(st, s.resumeTicket(ss))
	begun = true
	return ss, leave, nil
}

// open opens the ZooKeeper session. ctx is the stream's, so the attempt ends if the host dies
// or stops waiting.
func (s *Server) open(ctx context.Context, start *pb.Start) (recipes.Client, error) {
	timeout := recipes.DefaultOpenTimeout
	if t := start.GetOpenTimeout(); t != nil {
		timeout = t.AsDuration()
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	cfg := wire.Config(start.GetConfig())
	cfg.Logger = s.inner
	open := s.cfg.Open
	if r := start.GetResume(); r != nil {
		open = func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
			return s.resume(ctx, cfg, r)
		}
	}
	opened, err := open(telemetry.Served(ctx), cfg)
	if err != nil && s.ctx.Err() != nil {
		return nil, errNoMore // Server.Close has ended the attempt
	}
	return opened, err
}

func (s *Server) start(opened recipes.Client, r *pb.Resume) *session {
	ctx, cancel := context.WithCancelCause(s.ctx)
	ss := &session{Client: opened, contacts: contactsOf(opened), ctx: ctx, cancel: cancel, handle: r.GetSession(), lifetime: s.cfg.Lifetime, log: s.rpcLog()}
	ss.resumption.resumed = r != nil
	ss.out.limit = cmp.Or(s.cfg.unsent, MaxUnsent)
	ss.acquisitions = newAcquisitions(ss, s.cfg.Limits.Grants)
	s.add(ss)
	s.log.Debug("session opened", "session", fmt.Sprintf("%#x", ss.ID()), "timeout", ss.Timeout().String(), "resumed", r != nil)
	return ss
}

// end closes the ZooKeeper session after its stream has ended for any reason, and waits for
// the session's goroutines.
func (s *Server) end(ss *session) {
	s.remove(ss)
	ss.cancel(recipes.ErrClosed)
	if err := ss.close(); err != nil {
		s.unconfirmed(err)
	}
	ss.acquisitions.close()
	ss.tasks.Wait()
	s.log.Debug("session ended", "session", fmt.Sprintf("%#x", ss.ID()), "reason", ss.Err())
}

// close ends the ZooKeeper session. If that is not confirmed, the server's timeout ends it.
func (ss *session) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return ss.Client.Close(ctx)
}

func theSession(t target) (recipes.Session, error) { return t.Client, nil }

func (s service) Close(ctx context.Context, r *pb.CloseRequest) (*pb.CloseResponse, error) {
	return &pb.CloseResponse{}, do(s.Server, r, theSession, func(ss recipes.Session) error { return ss.Close(ctx) })
}

func (s service) Stats(ctx context.Context, r *pb.StatsRequest) (*pb.StatsResponse, error) {
	stats, err := with(s.Server, r, theSession, func(ss recipes.Session) (recipes.Stats, error) { return ss.Stats(ctx) })
	return wire.ToStats(stats), err
}
