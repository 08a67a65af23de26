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

// protocol are the promises of PROTOCOL.md that the contract does not contain, by its sections.
var protocol = []struct {
	name  string
	check func(*bench) error
}{
	{"handshake/a person who starts it gets its usage, and exit code 1", func(b *bench) error {
		p, err := b.run()
		if err != nil {
			return err
		}
		if err := b.exits(p, 1); err != nil {
			return err
		}
		if p.stdout.Len() > 0 || p.stderr.Len() == 0 {
			return fmt.Errorf("stdout %q, stderr %q; want the reason on stderr only", &p.stdout, &p.stderr)
		}
		return nil
	}},
	{"handshake/a socket directory that does not exist is exit code 4", func(b *bench) error {
		if runtime.GOOS == "windows" {
			return skipped("plugins listen on TCP")
		}
		return b.refuses(4, "PLUGIN_UNIX_SOCKET_DIR="+filepath.Join(b.dir, "none"))
	}},
	{"handshake/a certificate that is not in PEM is exit code 5", func(b *bench) error {
		return b.refuses(5, handshake.CertificateEnv+"=none")
	}},
	{"handshake/a host of another version sees that there is none in common", func(b *bench) error {
		const other = "4242"
		p, err := b.run(hosted("PLUGIN_PROTOCOL_VERSIONS=" + other)...)
		if err != nil {
			return err
		}
		if fields, err := b.firstLine(p); err == nil && len(fields) > 1 && fields[1] == other {
			return errors.New("it has agreed to version " + other)
		}
		return nil
	}},
	{"handshake/it prints one line, and serves without TLS", func(b *bench) error {
		p, err := b.attach()
		if err != nil {
			return err
		}
		_, err = pb.NewPluginServiceClient(p.conn).Info(b.ctx, &pb.InfoRequest{})
		return err
	}},
	{"versions/an unknown method is UNIMPLEMENTED", func(b *bench) error {
		p, err := b.attach()
		if err != nil {
			return err
		}
		err = p.conn.Invoke(b.ctx, "/zkrecipes.v1.SessionService/None", &pb.InfoRequest{}, &pb.InfoResponse{})
		if status.Code(err) != codes.Unimplemented {
			return fmt.Errorf("the error is %v", err)
		}
		return nil
	}},
	{"errors/a refusal has its reason in ErrorInfo", func(b *bench) error {
		s, err := b.session(long)
		if err != nil {
			return err
		}
		_, err = s.acquire(b.ctx, "1", "no-slash", nil)
		return is(err, recipes.ErrInvalid)
	}},
	{"requests/a repeated Acquire finds the grant of the first", func(b *bench) error {
		s, err := b.session(long)
		if err != nil {
			return err
		}
		first, err := s.acquire(b.ctx, "1", "/a", nil)
		if err != nil {
			return err
		}
		again, err := s.acquire(b.ctx, "1", "/a", nil)
		if err == nil && again.GetToken() != first.GetToken() {
			return fmt.Errorf("token %d, and then %d", first.GetToken(), again.GetToken())
		}
		return err
	}},
	{"requests/an id that was abandoned before its Acquire is refused", func(b *bench) error {
		s, err := b.session(long)
		if err != nil {
			return err
		}
		if _, err := s.grants().Abandon(b.ctx, &pb.AbandonRequest{Session: s.Session, RequestId: "1"}); err != nil {
			return err
		}
		if g, err := s.acquire(b.ctx, "1", "/a", nil); err == nil {
			return fmt.Errorf("granted, with token %d", g.GetToken())
		}
		return nil
	}},
	{"requests/a cancelled Acquire leaves the wait queue", func(b *bench) error {
		s, err := b.session(long)
		if err != nil {
			return err
		}
		if _, err := s.acquire(b.ctx, "1", "/a", nil); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(b.ctx)
		ended := make(chan error, 1)
		go func() { _, err := s.acquire(ctx, "2", "/a", nil); ended <- err }()
		err = b.eventually("in the wait queue", func() bool { return b.owned() == 2 })
		cancel()
		if granted := <-ended; granted == nil {
			return errors.New("granted to two")
		}
		return errors.Join(err, b.eventually("out of the wait queue", func() bool { return b.owned() == 1 }))
	}},
	{"lease/a heartbeat is echoed, with the age of the contact", func(b *bench) error {
		s, err := b.session(long)
		if err != nil {
			return err
		}
		if err := s.stream.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Beat{Beat: &pb.Beat{Number: 7}}}); err != nil {
			return err
		}
		var echo *pb.BeatEcho
		if err := s.until("a BeatEcho", func(m *pb.OpenResponse) bool { echo = m.GetBeatEcho(); return echo != nil }); err != nil {
			return err
		}
		if echo.GetNumber() != 7 || echo.ContactAge == nil || echo.GetContactAge().AsDuration() < 0 {
			return fmt.Errorf("the echo of the Beat 7 is %v", echo)
		}
		return nil
	}},
	{"lease/a host without heartbeats loses its session", func(b *bench) error {
		if _, err := b.session(time.Second); err != nil {
			return err
		}
		return b.sessionEnds()
	}},
	{"lease/the end of the stream ends the session", func(b *bench) error {
		s, err := b.session(long)
		if err != nil {
			return err
		}
		s.cancel()
		return b.sessionEnds()
	}},
	{"lease/a half-closed stream ends the session, and says so", func(b *bench) error {
		s, err := b.session(long)
		if err != nil {
			return err
		}
		return errors.Join(s.stream.CloseSend(), s.lost("SESSION_CLOSED"), b.sessionEnds())
	}},
	{"lease/the loss of a watched grant is reported", func(b *bench) error {
		s, err := b.session(long)
		if err != nil {
			return err
		}
		other, err := b.open(s.on, long, nil)
		if err != nil {
			return err
		}
		g, err := s.acquire(b.ctx, "1", "/a", nil)
		if err != nil {
			return err
		}
		if _, err := s.grants().Watch(b.ctx, &pb.WatchRequest{Session: s.Session, RequestId: "1"}); err != nil {
			return err
		}
		if _, err := other.acquire(b.ctx, "2", "/b", nil); err != nil {
			return err
		}
		if err := other.write(b.ctx, "2", &pb.Op{Kind: pb.OpKind_OP_KIND_DELETE, Path: g.GetZnode(), Version: -1}); err != nil {
			return err
		}
		var lost *pb.GrantLost
		if err := s.until("GrantLost", func(m *pb.OpenResponse) bool { lost = m.GetGrantLost(); return lost != nil }); err != nil {
			return err
		}
		if lost.GetRequestId() != "1" || !slices.Contains(lost.GetReason().GetReasons(), "REMOVED") {
			return fmt.Errorf("it is %v; want the request id 1 and the reason REMOVED", lost)
		}
		return is(s.write(b.ctx, "1"), recipes.ErrNotHeld)
	}},
	{"lease/a session that ZooKeeper expires is reported", func(b *bench) error {
		s, err := b.session(long)
		if err != nil {
			return err
		}
		b.server.ExpireSession(s.SessionId)
		return s.lost("SESSION_EXPIRED")
	}},
	{"resume/another plugin resumes what a killed one held", func(b *bench) error {
		return b.resumes(func(s *session) error {
			err := s.on.cmd.Process.Kill()
			<-s.on.exited
			return err
		})
	}},
	{"resume/another plugin resumes a session after Detach", func(b *bench) error {
		return b.resumes(func(s *session) error {
			_, err := pb.NewSessionServiceClient(s.on.conn).Detach(b.ctx, &pb.DetachRequest{Session: s.Session})
			return err
		})
	}},
	{"end/Shutdown closes the sessions, and the exit code is 0", func(b *bench) error {
		s, err := b.session(long)
		if err != nil {
			return err
		}
		if _, err := pb.NewPluginServiceClient(s.on.conn).Shutdown(b.ctx, &pb.ShutdownRequest{}); err != nil {
			return err
		}
		if n := len(b.server.Sessions()); n > 0 {
			return errors.New("a session is open after the answer")
		}
		if err := s.lost("PLUGIN_LOST"); err != nil {
			return err
		}
		s.on.detach()
		if err := b.exits(s.on, 0); err != nil {
			return err
		}
		if rest := s.on.stdout.Bytes(); slices.Index(rest, '\n') != len(rest)-1 {
			return fmt.Errorf("stdout is %q; want only the first line", rest)
		}
		return nil
	}},
	{"end/the death of the host ends the sessions and the process", func(b *bench) error {
		s, err := b.session(long)
		if err != nil {
			return err
		}
		_ = s.on.conn.Close() // as the kernel does
		return errors.Join(b.sessionEnds(), b.exits(s.on, 0))
	}},
	{"end/SIGTERM ends the sessions and the process, SIGINT and SIGHUP do not", func(b *bench) error {
		if runtime.GOOS == "windows" {
			return skipped("there are no signals")
		}
		s, err := b.session(long)
		if err != nil {
			return err
		}
		for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
			if err := s.on.cmd.Process.Signal(signal); err != nil {
				return err
			}
		}
		if _, err := s.acquire(b.ctx, "1", "/a", nil); err != nil {
			return fmt.Errorf("after SIGINT and SIGHUP: %w", err)
		}
		if err := s.on.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		if err := b.sessionEnds(); err != nil {
			return err
		}
		select {
		case <-s.on.exited:
			return nil
		case <-b.ctx.Done():
			return errors.New("it does not exit")
		}
	}},
}

// protocolParts returns the parts of the protocol.
func (o Options) protocolParts() (parts []part) {
	for _, c := range protocol {
		parts = append(parts, part{"protocol/" + c.name, func(ctx context.Context) error {
			b, err := newBench(ctx, o.Command)
			if err != nil {
				return err
			}
			defer b.end()
			return c.check(b)
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

// refuses starts the plugin with a variable that it must refuse.
func (b *bench) refuses(code int, variable string) error {
	p, err := b.run(hosted(variable)...)
	if err != nil {
		return err
	}
	if err := b.exits(p, code); err != nil {
		return err
	}
	if p.stderr.Len() == 0 {
		return errors.New("no reason is on stderr")
	}
	return nil
}

// session starts a plugin and opens a session.
func (b *bench) session(timeout time.Duration) (*session, error) {
	p, err := b.attach()
	if err != nil {
		return nil, err
	}
	return b.open(p, timeout, nil)
}

func (b *bench) sessionEnds() error {
	return b.eventually("closed in ZooKeeper: the session", func() bool { return len(b.server.Sessions()) == 0 })
}

// owned returns the number of ephemeral znodes.
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
func (b *bench) resumes(leave func(*session) error) error {
	s, err := b.session(long)
	if err != nil {
		return err
	}
	info, err := pb.NewPluginServiceClient(s.on.conn).Info(b.ctx, &pb.InfoRequest{})
	switch {
	case err != nil:
		return err
	case !slices.Contains(info.GetCapabilities(), "resume"):
		return skipped("the plugin lacks the capability resume")
	case len(s.Ticket) == 0:
		return errors.New("the message Opened has no ticket")
	}
	g, err := s.acquire(b.ctx, "1", "/a", nil)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := leave(s); err != nil {
		return err
	}
	next, err := b.attach()
	if err != nil {
		return err
	}
	r, err := b.open(next, long, &pb.Resume{Ticket: s.Ticket, Session: s.Session, KnownContactAge: durationpb.New(time.Since(begun))})
	if err != nil {
		return err
	}
	if r.Session != s.Session || r.SessionId != s.SessionId {
		return fmt.Errorf("the session %s (%#x) is resumed as %s (%#x)", s.Session, s.SessionId, r.Session, r.SessionId)
	}
	if _, err := r.acquire(b.ctx, "2", "/b", nil); is(err, recipes.ErrInvalid) != nil {
		return fmt.Errorf("a new Acquire before DropRest: %v; want RESUMING", err)
	}
	again, err := r.acquire(b.ctx, "1", "/a", g)
	if err != nil {
		return fmt.Errorf("the grant is not resumed: %w", err)
	}
	if again.GetToken() != g.GetToken() || again.GetZnode() != g.GetZnode() {
		return fmt.Errorf("the grant is %v, and was %v", again, g)
	}
	if _, err := pb.NewSessionServiceClient(next.conn).DropRest(b.ctx, &pb.DropRestRequest{Session: r.Session}); err != nil {
		return fmt.Errorf("calling DropRest: %w", err)
	}
	return r.write(b.ctx, "1")
}

func (s *session) grants() pb.GrantServiceClient { return pb.NewGrantServiceClient(s.on.conn) }

// acquire acquires a lock, or resumes one.
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

// write makes a guarded write.
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
