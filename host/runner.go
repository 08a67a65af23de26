package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
)

// drainTimeout bounds how long the pipes of a process are read after its exit. Its children
// may keep them open without end.
const drainTimeout = 250 * time.Millisecond

// process is a plugin's process, a runner.Runner of go-plugin. It replaces go-plugin's own
// runner, which passes stderr on unfiltered, gives the plugin the host's stdin, and waits for
// pipes that a grandchild may keep open. Only a Client can kill the process of that runner,
// and while the plugin is frozen the Client's lock is held.
type process struct {
	cmd  *exec.Cmd
	tail tail
	said hello // what go-plugin has read of stdout

	mu      sync.Mutex
	started bool
	killed  bool // Kill was called
	ended   bool // and the process was running

	stdout, stderr *os.File // our ends
	clean          *io.PipeReader
	cleanEnd       *io.PipeWriter

	exited chan struct{} // closed when the process was reaped
	err    error         // of cmd.Wait
	tasks  sync.WaitGroup
}

// newProcess returns a process that is not started yet. env has go-plugin's variables.
func newProcess(cfg Config, env []string) *process {
	cmd := exec.Command(cfg.Path, cfg.Args...)
	cmd.SysProcAttr = ownGroup()
	cmd.Env = append(environment(cfg.Env, level(cfg.Logger)), env...)
	if cfg.Lifetime != nil {
		cmd.ExtraFiles = []*os.File{cfg.Lifetime}
		cmd.Env = append(cmd.Env, handshake.LifetimeEnv+"=3") // the first descriptor after stderr
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	p.clean, p.cleanEnd = io.Pipe()
	return p
}

func level(l hclog.Logger) hclog.Level {
	if l.GetLevel() == hclog.Off {
		return hclog.Error // for the error of a failed start
	}
	return l.GetLevel()
}

// errKilled is returned when Kill was called before Start.
var errKilled = errors.New("the start was given up")

// Start starts the process, and goroutines that read its output and wait for its exit. They
// end when the process has exited, and finish waits for them.
func (p *process) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return errKilled
	}
	stdout, stdoutEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	stderr, stderrEnd, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdout.Close(), stdoutEnd.Close())
	}
	p.cmd.Stdout, p.cmd.Stderr = stdoutEnd, stderrEnd
	err = p.cmd.Start()
	_, _ = stdoutEnd.Close(), stderrEnd.Close()
	if err != nil {
		_, _ = stdout.Close(), stderr.Close()
		return err
	}
	p.started = true
	p.stdout, p.stderr = stdout, stderr
	read := make(chan struct{})
	p.tasks.Go(func() {
		defer close(read)
		_ = sanitise(p.cleanEnd, p.stderr, &p.tail)
		_ = p.cleanEnd.Close()
	})
	p.tasks.Go(func() { p.reap(read) })
	return nil
}

// reap waits for the process to exit, drains its pipes for a bounded time and closes them.
// Without the close, a pipe would be read until the process's children have exited too.
func (p *process) reap(read <-chan struct{}) {
	p.err = p.cmd.Wait()
	drain := time.NewTimer(drainTimeout)
	defer drain.Stop()
	close(p.exited)
	select {
	case <-read:
	case <-drain.C:
	}
	_, _ = p.stdout.Close(), p.stderr.Close()
}

// Kill kills the process, even if it is frozen. It may be called at any time, and more than
// once. Before Start, it makes Start fail.
func (p *process) Kill(context.Context) error {
	p.mu.Lock()
	p.killed = true
	started := p.started
	p.mu.Unlock()
	if !started {
		return nil
	}
	if !p.isExiting() {
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// endedByHost reports whether Kill has ended the process.
func (p *process) endedByHost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// isExiting reports whether the process is exiting or has exited, even if it was not reaped
// yet. The system closes a process's sockets only after all of its threads have stopped. So
// if the exit is why a stream has ended, isExiting returns true.
func (p *process) isExiting() bool {
	select {
	case <-p.exited:
		return true
	default:
	}
	if exiting, known := exiting(p.pid()); known {
		return exiting
	}
	moment := time.NewTimer(exitMoment)
	defer moment.Stop()
	select {
	case <-p.exited:
		return true
	case <-moment.C:
		return false
	}
}

// exitMoment bounds the time from the close of a process's sockets to its exit, on systems
// that do not report that a process is exiting. It delays the loss of a session whose plugin
// is alive.
const exitMoment = 50 * time.Millisecond

// Wait returns when the process has exited.
func (p *process) Wait(context.Context) error {
	<-p.exited
	return p.err
}

// finish waits for the goroutines that Start started. The process must have exited.
func (p *process) finish() {
	_ = p.clean.Close()
	p.tasks.Wait()
}

func (p *process) Stdout() io.ReadCloser { return recorded{p.stdout, &p.said} }
func (p *process) Stderr() io.ReadCloser { return p.clean }
func (p *process) Name() string          { return p.cmd.Path }

// pid is the process id, or 0 if the process was not started.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		return 0
	}
	return p.cmd.Process.Pid
}

// ID is the process id, or "" without a process: then go-plugin kills nothing.
func (p *process) ID() string {
	if pid := p.pid(); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

// Diagnose returns the advice that go-plugin adds to the error of a failed handshake.
func (p *process) Diagnose(context.Context) string {
	return fmt.Sprintf("%s should be a zkrecipes plugin for this system and print nothing on stdout", p.cmd.Path)
}

func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

var _ runner.Runner = (*process)(nil)

// inheritedEnv are the variables that a plugin gets from the host's environment; Config.Env
// lists them too. They are for temporary files, certificates, the time zone, the language, and
// the limits of Go's runtime, which an administrator has set for the machine. Programs do not
// start on Windows without some of them. The plugin gets no others, because an environment
// often contains secrets.
var inheritedEnv = []string{
	"TMPDIR", "TMP", "TEMP",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	"TZ", "LANG", "LC_ALL",
	"GOMEMLIMIT", "GOMAXPROCS",
	"SYSTEMROOT", "WINDIR",
}

// environment returns the plugin's environment, to which go-plugin adds its own variables.
func environment(extra []string, level hclog.Level) []string {
	var env []string
	inherit := func(name string) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range inheritedEnv {
		inherit(name)
	}
	if level != hclog.NoLevel {
		env = append(env, handshake.LogLevelEnv+"="+level.String())
	}
	for _, e := range extra {
		if strings.Contains(e, "=") {
			env = append(env, e)
		} else {
			inherit(e)
		}
	}
	return env
}
