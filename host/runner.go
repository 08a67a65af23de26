package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"
)

// drainTimeout is how long the pipes of a process that has exited are still
// read: its children may hold them open for ever.
const drainTimeout = 250 * time.Millisecond

// process is a plugin's process, as go-plugin's runner.Runner. It is here
// because go-plugin's own passes stderr on unfiltered, gives the host's stdin
// away, waits for pipes that a grandchild may hold, and can be killed only
// through a Client whose lock a frozen plugin holds.
type process struct {
	cmd  *exec.Cmd
	tail tail
	said hello // what go-plugin has read of stdout

	mu      sync.Mutex
	started bool
	killed  bool

	stdout, stderr *os.File // our ends
	clean          *io.PipeReader
	cleanEnd       *io.PipeWriter

	exited chan struct{} // closed when the process has been waited for
	err    error         // of the wait
	tasks  sync.WaitGroup
}

// newProcess makes the process from what go-plugin wants in its environment.
func newProcess(cfg Config, env []string) *process {
	cmd := exec.Command(cfg.Path, cfg.Args...)
	cmd.SysProcAttr = apart()
	cmd.Env = append(environment(cfg.Env, level(cfg.Logger)), env...)
	p := &process{cmd: cmd, exited: make(chan struct{})}
	p.clean, p.cleanEnd = io.Pipe()
	return p
}

func level(l hclog.Logger) hclog.Level {
	if l.GetLevel() == hclog.Off {
		return hclog.Error // what a failed start has to say must be there
	}
	return l.GetLevel()
}

// errKilled: the process was killed before it was started.
var errKilled = errors.New("the start was given up")

// Start starts the process and the goroutines that read and wait for it. They
// end with it, and finish waits for them.
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
	p.tasks.Go(func() { p.wait(read) })
	return nil
}

// wait reaps the process and then ends the reading of its pipes, which would
// otherwise last as long as any of its children.
func (p *process) wait(read <-chan struct{}) {
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

// Kill ends the process the hard way, frozen or not. It may be called at any
// time and again; before Start it prevents it.
func (p *process) Kill(context.Context) error {
	p.mu.Lock()
	p.killed = true
	started := p.started
	p.mu.Unlock()
	if !started {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Wait returns when the process has exited.
func (p *process) Wait(context.Context) error {
	<-p.exited
	return p.err
}

// finish waits for everything that Start started. The process must have exited.
func (p *process) finish() {
	_ = p.clean.Close()
	p.tasks.Wait()
}

// state says how the process ended.
func (p *process) state() string {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String()
	default:
		return "running"
	}
}

func (p *process) Stdout() io.ReadCloser { return overheard{p.stdout, &p.said} }
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

// ID is the process id, or "" if there is no process: go-plugin has nothing to
// kill then.
func (p *process) ID() string {
	if pid := p.pid(); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

// Diagnose is part of the error of a failed handshake.
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
