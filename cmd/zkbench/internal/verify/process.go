package verify

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// bench starts plugin processes for one part, and ends them. It has a server of its own.
type bench struct {
	ctx     context.Context
	command []string
	server  *zkserver.Server
	dir     string // for sockets
	started []*process
}

type process struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer // must not be read before the process has exited
	line           chan string  // the first line of stdout
	exited         chan struct{}
	conn           *grpc.ClientConn
	detach         context.CancelFunc // ends the stream of Attach
}

// run starts the plugin with these variables besides PATH.
func (b *bench) run(env ...string) *process {
	p := &process{cmd: exec.Command(b.command[0], b.command[1:]...), line: make(chan string, 1), exited: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), socketDirectory + "=" + b.dir}, env...)
	for _, name := range []string{"SYSTEMROOT", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			p.cmd.Env = append(p.cmd.Env, name+"="+value)
		}
	}
	p.cmd.WaitDelay = closing // a process that it has left may have its stdout
	p.cmd.Stderr = &p.stderr
	reader, writer := io.Pipe()
	p.cmd.Stdout = writer
	require(p.cmd.Start())
	b.started = append(b.started, p)
	var read sync.WaitGroup
	read.Go(func() {
		lines := bufio.NewReader(io.TeeReader(reader, &p.stdout))
		line, _ := lines.ReadString('\n') // without a line the plugin has exited
		p.line <- line
		_, _ = io.Copy(io.Discard, lines)
	})
	go func() { // ends with the process
		_ = p.cmd.Wait() // the exit code is in ProcessState
		_ = writer.Close()
		read.Wait()
		close(p.exited)
	}()
	return p
}

// end kills what the part has not ended.
func (b *bench) end() {
	for _, p := range b.started {
		if p.conn != nil {
			p.detach()
			_ = p.conn.Close()
		}
		_ = p.cmd.Process.Kill() // it may have exited
		<-p.exited
	}
	_ = b.server.Close()
	_ = os.RemoveAll(b.dir)
}

// hosted are the variables of a host without TLS.
func hosted(extra ...string) []string {
	cookie := handshake.Config()
	return append([]string{cookie.MagicCookieKey + "=" + cookie.MagicCookieValue, fmt.Sprintf("%s=%d", versionsEnv, handshake.Version)}, extra...)
}

func (b *bench) firstLine(p *process) (fields []string, err error) {
	select {
	case line := <-p.line:
		if line == "" {
			return nil, fmt.Errorf("it exits without a line on stdout; stderr: %s", b.tail(p))
		}
		return strings.Split(strings.TrimSuffix(line, "\n"), "|"), nil
	case <-b.ctx.Done():
		return nil, errors.New("it prints no line on stdout")
	}
}

// tail returns the end of the stderr of a process that exits.
func (b *bench) tail(p *process) string {
	select {
	case <-p.exited:
	case <-b.ctx.Done():
		return ""
	}
	return tail(&p.stderr)
}

func tail(written *bytes.Buffer) string {
	const most = 500
	text := strings.TrimSpace(written.String())
	return text[max(0, len(text)-most):]
}

func (b *bench) attach() *process {
	p := b.run(hosted()...)
	fields := got(b.firstLine(p))
	if len(fields) < 5 || fields[0] != "1" || fields[1] != fmt.Sprint(handshake.Version) || fields[4] != "grpc" || len(fields) > 5 && fields[5] != "" {
		failf("its line on stdout is %q; want 1|%d|NETWORK|ADDRESS|grpc|", strings.Join(fields, "|"), handshake.Version)
	}
	var target string
	switch network, address := fields[2], fields[3]; {
	case network == "unix" && filepath.Dir(address) == filepath.Clean(b.dir):
		target = "unix:" + address
	case network == "tcp":
		target = "passthrough:" + address
	default:
		failf("it listens on %s %s; want a socket in PLUGIN_UNIX_SOCKET_DIR (%s), or a loopback port", network, address, b.dir)
	}
	p.conn = got(grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials())))
	var ctx context.Context
	ctx, p.detach = context.WithCancel(b.ctx)
	stream, err := pb.NewPluginServiceClient(p.conn).Attach(ctx, &pb.AttachRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		failf("calling Attach: %w", err)
	}
	return p
}

func (b *bench) exits(p *process, code int) error {
	select {
	case <-p.exited:
	case <-b.ctx.Done():
		return errors.New("it does not exit")
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		return fmt.Errorf("exit code %d; want %d; stderr: %s", got, code, b.tail(p))
	}
	return nil
}

// long is the timeout of a session that must not expire. So parts send no heartbeats.
const long = 50 * time.Second

type session struct {
	*pb.Opened
	on     *process
	stream grpc.BidiStreamingClient[pb.OpenRequest, pb.OpenResponse]
	cancel context.CancelFunc
}

func (b *bench) open(p *process, timeout time.Duration, resume *pb.Resume) (*session, error) {
	ctx, cancel := context.WithCancel(b.ctx)
	stream, err := pb.NewSessionServiceClient(p.conn).Open(ctx)
	if err == nil {
		err = stream.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Start{Start: &pb.Start{
			Config: &pb.Config{Servers: []string{b.server.Addr()}, SessionTimeout: durationpb.New(timeout)}, Resume: resume,
		}}})
	}
	s := &session{on: p, stream: stream, cancel: cancel}
	if err == nil {
		var first *pb.OpenResponse
		first, err = stream.Recv()
		s.Opened = first.GetOpened()
	}
	if err == nil && s.Opened == nil {
		err = errors.New("the first message on the stream is not Opened")
	}
	if err != nil {
		cancel()
		err, _ = wire.Error(err)
		return nil, fmt.Errorf("calling Open: %w", err)
	}
	return s, nil
}

// until reads the stream up to the first message that want accepts. Its end is an error.
func (s *session) until(what string, want func(*pb.OpenResponse) bool) error {
	for {
		m, err := s.stream.Recv()
		if err != nil {
			return fmt.Errorf("the session's stream ends without %s: %w", what, err)
		}
		if want(m) {
			return nil
		}
	}
}

// lost reads the stream up to its end, whose last message must have the reason.
func (s *session) lost(reason string) error {
	var last *pb.OpenResponse
	for {
		m, err := s.stream.Recv()
		if err != nil {
			break
		}
		last = m
	}
	changed := last.GetStateChanged()
	if changed.GetState() != pb.State_STATE_LOST || !slices.Contains(changed.GetReason().GetReasons(), reason) {
		return fmt.Errorf("the last message on the session's stream is %v; want STATE_LOST with the reason %s", last, reason)
	}
	return nil
}

// look is the time between two reads of the server's state.
const look = 10 * time.Millisecond

// poll calls is until it returns true, or until the part has no time left. It then returns false.
func (b *bench) poll(is func() bool) bool {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for !is() {
		select {
		case <-ticker.C:
		case <-b.ctx.Done():
			return false
		}
	}
	return true
}

// eventually waits until the server shows what is wanted.
func (b *bench) eventually(what string, is func() bool) error {
	if !b.poll(is) {
		return errors.New("not " + what)
	}
	return nil
}
