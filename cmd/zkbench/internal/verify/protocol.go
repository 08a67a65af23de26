package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// promise is a part of plugins or of hosts. It has the bench on which these run.
type promise[B any] struct {
	name  string
	check func(B)
}

// protocol are the promises of PROTOCOL.md that the contract does not contain, by its sections.
var protocol = []promise[*bench]{
	{"handshake/a person who starts it gets its usage, and exit code 1", func(b *bench) {
		p := b.run()
		require(b.exits(p, 1))
		if p.stdout.Len() > 0 || p.stderr.Len() == 0 {
			failf("stdout %q, stderr %q; want the reason on stderr only", &p.stdout, &p.stderr)
		}
	}},
	{"handshake/a socket directory that does not exist is exit code 4", func(b *bench) {
		if runtime.GOOS == "windows" {
			require(skipped("plugins listen on TCP"))
		}
		b.refuses(4, socketDirectory+"="+filepath.Join(b.dir, "none"))
	}},
	{"handshake/a certificate that is not in PEM is exit code 5", func(b *bench) {
		b.refuses(5, handshake.CertificateEnv+"=none")
	}},
	{"handshake/a host of another version sees that there is none in common", func(b *bench) {
		const other = "4242"
		p := b.run(hosted(versionsEnv + "=" + other)...)
		if fields, err := b.firstLine(p); err == nil && len(fields) > 1 && fields[1] == other {
			failf("it has agreed to version %s", other)
		}
	}},
	{"handshake/it prints one line, and serves without TLS", func(b *bench) {
		got(pb.NewPluginServiceClient(b.attach().conn).Info(b.ctx, &pb.InfoRequest{}))
	}},
	{"versions/an unknown method is UNIMPLEMENTED", func(b *bench) {
		err := b.attach().conn.Invoke(b.ctx, "/zkrecipes.v1.SessionService/None", &pb.InfoRequest{}, &pb.InfoResponse{})
		if status.Code(err) != codes.Unimplemented {
			failf("the error is %v", err)
		}
	}},
	{"errors/a refusal has its reason in ErrorInfo", func(b *bench) {
		s := b.session(long)
		_, err := s.acquire(b.ctx, "1", "no-slash", nil)
		require(is(err, recipes.ErrInvalid))
	}},
	{"requests/a repeated Acquire finds the grant of the first", func(b *bench) {
		s := b.session(long)
		first := got(s.acquire(b.ctx, "1", "/a", nil))
		if again := got(s.acquire(b.ctx, "1", "/a", nil)); again.GetToken() != first.GetToken() {
			failf("token %d, and then %d", first.GetToken(), again.GetToken())
		}
	}},
	{"requests/an id that was abandoned before its Acquire is refused", func(b *bench) {
		s := b.session(long)
		got(s.grants().Abandon(b.ctx, &pb.AbandonRequest{Session: s.Session, RequestId: "1"}))
		if g, err := s.acquire(b.ctx, "1", "/a", nil); err == nil {
			failf("granted, with token %d", g.GetToken())
		}
	}},
	{"requests/a cancelled Acquire leaves the wait queue", func(b *bench) {
		s := b.session(long)
		got(s.acquire(b.ctx, "1", "/a", nil))
		ctx, cancel := context.WithCancel(b.ctx)
		ended := make(chan error, 1)
		go func() { _, err := s.acquire(ctx, "2", "/a", nil); ended <- err }()
		err := b.eventually("in the wait queue", func() bool { return b.owned() == 2 })
		cancel()
		if granted := <-ended; granted == nil {
			failf("granted to two")
		}
		require(errors.Join(err, b.eventually("out of the wait queue", func() bool { return b.owned() == 1 })))
	}},
	{"lease/a heartbeat is echoed, with the age of the contact", func(b *bench) {
		s := b.session(long)
		require(s.stream.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Beat{Beat: &pb.Beat{Number: 7}}}))
		var echo *pb.BeatEcho
		require(s.until("a BeatEcho", func(m *pb.OpenResponse) bool { echo = m.GetBeatEcho(); return echo != nil }))
		if echo.GetNumber() != 7 || echo.ContactAge == nil || echo.GetContactAge().AsDuration() < 0 {
			failf("the echo of the Beat 7 is %v", echo)
		}
	}},
	{"lease/a host without heartbeats loses its session", func(b *bench) {
		b.session(time.Second)
		require(b.sessionEnds())
	}},
	{"lease/the end of the stream ends the session", func(b *bench) {
		s := b.session(long)
		s.cancel()
		require(b.sessionEnds())
	}},
	{"lease/a half-closed stream ends the session, and says so", func(b *bench) {
		s := b.session(long)
		require(errors.Join(s.stream.CloseSend(), s.lost("SESSION_CLOSED"), b.sessionEnds()))
	}},
	{"lease/the loss of a watched grant is reported", func(b *bench) {
		s := b.session(long)
		other := got(b.open(s.on, long, nil))
		g := got(s.acquire(b.ctx, "1", "/a", nil))
		got(s.grants().Watch(b.ctx, &pb.WatchRequest{Session: s.Session, RequestId: "1"}))
		got(other.acquire(b.ctx, "2", "/b", nil))
		require(other.write(b.ctx, "2", &pb.Op{Kind: pb.OpKind_OP_KIND_DELETE, Path: g.GetZnode(), Version: -1}))
		var lost *pb.GrantLost
		require(s.until("GrantLost", func(m *pb.OpenResponse) bool { lost = m.GetGrantLost(); return lost != nil }))
		if lost.GetRequestId() != "1" || !slices.Contains(lost.GetReason().GetReasons(), "REMOVED") {
			failf("it is %v; want the request id 1 and the reason REMOVED", lost)
		}
		require(is(s.write(b.ctx, "1"), recipes.ErrNotHeld))
	}},
	{"lease/a session that ZooKeeper expires is reported", func(b *bench) {
		s := b.session(long)
		b.server.ExpireSession(s.SessionId)
		require(s.lost("SESSION_EXPIRED"))
	}},
	{"resume/another plugin resumes what a killed one held", func(b *bench) {
		b.resumes(func(s *session) {
			require(s.on.cmd.Process.Kill())
			<-s.on.exited
		})
	}},
	{"resume/another plugin resumes a session after Detach", func(b *bench) {
		b.resumes(func(s *session) {
			got(pb.NewSessionServiceClient(s.on.conn).Detach(b.ctx, &pb.DetachRequest{Session: s.Session}))
		})
	}},
	{"end/Shutdown closes the sessions, and the exit code is 0", func(b *bench) {
		s := b.session(long)
		got(pb.NewPluginServiceClient(s.on.conn).Shutdown(b.ctx, &pb.ShutdownRequest{}))
		if n := len(b.server.Sessions()); n > 0 {
			failf("a session is open after the answer")
		}
		require(s.lost("PLUGIN_LOST"))
		s.on.detach()
		require(b.exits(s.on, 0))
		if rest := s.on.stdout.Bytes(); slices.Index(rest, '\n') != len(rest)-1 {
			failf("stdout is %q; want only the first line", rest)
		}
	}},
	{"end/the death of the host ends the sessions and the process", func(b *bench) {
		s := b.session(long)
		_ = s.on.conn.Close() // as the kernel does
		require(errors.Join(b.sessionEnds(), b.exits(s.on, 0)))
	}},
	{"end/SIGTERM ends the sessions and the process, SIGINT and SIGHUP do not", func(b *bench) {
		if runtime.GOOS == "windows" {
			require(skipped("there are no signals"))
		}
		s := b.session(long)
		for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
			require(s.on.cmd.Process.Signal(signal))
		}
		if _, err := s.acquire(b.ctx, "1", "/a", nil); err != nil {
			failf("after SIGINT and SIGHUP: %w", err)
		}
		require(s.on.cmd.Process.Signal(syscall.SIGTERM))
		require(b.sessionEnds())
		select {
		case <-s.on.exited:
		case <-b.ctx.Done():
			failf("it does not exit")
		}
	}},
}

func (o Options) protocolParts() (parts []part) {
	for _, p := range protocol {
		parts = append(parts, part{"protocol/" + p.name, func(ctx context.Context) {
			b := got(newBench(ctx, o.Command))
			defer b.end()
			p.check(b)
		}})
	}
	return parts
}

func newBench(ctx context.Context, command []string) (*bench, error) {
	dir, err := os.MkdirTemp("", "zkv-") // short, for the path of a socket
	if err != nil {
		return nil, err
	}
	server, err := zkserver.Listen(contractServer)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &bench{ctx: ctx, command: command, server: server, dir: dir}, nil
}

func (b *bench) refuses(code int, variable string) {
	p := b.run(hosted(variable)...)
	require(b.exits(p, code))
	if p.stderr.Len() == 0 {
		failf("no reason is on stderr")
	}
}

func (b *bench) session(timeout time.Duration) *session {
	return got(b.open(b.attach(), timeout, nil))
}

func (b *bench) sessionEnds() error {
	return b.eventually("closed in ZooKeeper: the session", func() bool { return len(b.server.Sessions()) == 0 })
}

func (b *bench) owned() (n int) {
	for _, node := range b.server.Tree() {
		if node.Stat.EphemeralOwner > 0 {
			n++
		}
	}
	return n
}

// resumes opens a session and takes a lock. leave makes the plugin stop serving the session;
// then another plugin resumes both.
func (b *bench) resumes(leave func(*session)) {
	s := b.session(long)
	info := got(pb.NewPluginServiceClient(s.on.conn).Info(b.ctx, &pb.InfoRequest{}))
	switch {
	case !slices.Contains(info.GetCapabilities(), "resume"):
		require(skipped("the plugin lacks the capability resume"))
	case len(s.Ticket) == 0:
		failf("the message Opened has no ticket")
	}
	g := got(s.acquire(b.ctx, "1", "/a", nil))
	begun := time.Now()
	leave(s)
	next := b.attach()
	r := got(b.open(next, long, &pb.Resume{Ticket: s.Ticket, Session: s.Session, KnownContactAge: durationpb.New(time.Since(begun))}))
	if r.Session != s.Session || r.SessionId != s.SessionId {
		failf("the session %s (%#x) is resumed as %s (%#x)", s.Session, s.SessionId, r.Session, r.SessionId)
	}
	if _, err := r.acquire(b.ctx, "2", "/b", nil); is(err, recipes.ErrInvalid) != nil {
		failf("a new Acquire before DropRest: %v; want RESUMING", err)
	}
	again, err := r.acquire(b.ctx, "1", "/a", g)
	if err != nil {
		failf("the grant is not resumed: %w", err)
	}
	if again.GetToken() != g.GetToken() || again.GetZnode() != g.GetZnode() {
		failf("the grant is %v, and was %v", again, g)
	}
	if _, err := pb.NewSessionServiceClient(next.conn).DropRest(b.ctx, &pb.DropRestRequest{Session: r.Session}); err != nil {
		failf("calling DropRest: %w", err)
	}
	require(r.write(b.ctx, "1"))
}

func (s *session) grants() pb.GrantServiceClient { return pb.NewGrantServiceClient(s.on.conn) }

func (s *session) acquire(ctx context.Context, id, path string, resumed *pb.Grant) (*pb.Grant, error) {
	r, err := s.grants().Acquire(ctx, &pb.AcquireRequest{
		Session: s.Session, RequestId: id, Path: path, Resumed: resumed, Recipe: &pb.AcquireRequest_Lock{Lock: &pb.Lock{}},
	})
	err, _ = wire.Error(err)
	if errors.Is(err, recipes.ErrUnsupported) {
		err = skipped("the plugin lacks the capability lock")
	}
	return r.GetGrant(), err
}

func (s *session) write(ctx context.Context, id string, ops ...*pb.Op) error {
	_, err := s.grants().Write(ctx, &pb.WriteRequest{Session: s.Session, RequestId: id, Ops: ops})
	err, _ = wire.Error(err)
	return err
}

func is(err, want error) error {
	if _, ok := errors.AsType[skipped](err); ok {
		return err
	}
	if !errors.Is(err, want) {
		return fmt.Errorf("the error is %s; want a match of %q", strconv.Quote(fmt.Sprint(err)), want)
	}
	return nil
}
