package ensemble

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"
)

var (
	errStopped    = errors.New("the ensemble was stopped")
	errNotRunning = errors.New("the server is not running")
)

// Server is one ZooKeeper server. It keeps its ports and its data when it is
// killed and restarted. Its methods may be called from several goroutines.
type Server struct {
	id       int // as ZooKeeper counts: from 1
	dir      string
	host     Host
	ports    ports
	launcher *launcher
	log      hclog.Logger

	mu      sync.Mutex
	cfg     Config
	proc    *process // the last run, nil before the first
	killed  bool     // by Kill, Restart or Stop
	frozen  bool
	stopped bool   // with the ensemble: the server is not started again
	tail    string // of the log, after the files are deleted
}

type ports struct{ client, secure, quorum, election int }

const logFile = "server.log"

// Addr is the server's client port, as host:port.
func (s *Server) Addr() string { return s.host.address(s.ports.client) }

// SecureAddr is the server's TLS client port, "" without Config.TLS.
func (s *Server) SecureAddr() string {
	if s.ports.secure == 0 {
		return ""
	}
	return s.host.address(s.ports.secure)
}

// DataDir is the directory of the server's transaction logs and snapshots, until Stop.
func (s *Server) DataDir() string { return filepath.Join(s.dir, "data", "version-2") }

// Pid is the process id of the running server, frozen or not, 0 if it does not run.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return 0
	}
	return s.proc.pid()
}

// Kill ends the server at once, frozen or not, like a crash: nothing is flushed, and no
// session is closed. It returns after the process has ended. It does nothing to a server
// that does not run.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

// Restart kills the server if it runs, starts it again with the same ports and data, and
// waits until it serves. If ctx ends first, the server keeps running. A server cannot serve
// before a majority runs: restart several servers from several goroutines.
func (s *Server) Restart(ctx context.Context) error {
	proc, err := s.relaunch()
	if err != nil {
		return fmt.Errorf("ensemble: restart server %d: %w", s.id, err)
	}
	return s.waitServing(ctx, proc)
}

func (s *Server) relaunch() (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.kill(); err != nil {
		return nil, err
	}
	return s.launch()
}

// Install replaces the ZooKeeper that the server runs from its next start on. The server
// keeps its data, so it must be able to read them.
func (s *Server) Install(i Installation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Installation = i
}

// Forget deletes the stored data of the server, which must not run. After a restart the
// server gets all data from the leader, if the other servers are a majority.
func (s *Server) Forget() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return fmt.Errorf("ensemble: server %d runs; kill it first", s.id)
	}
	return os.RemoveAll(s.DataDir())
}

// Freeze stops all threads of the server (SIGSTOP). The server keeps its connections and
// answers nothing, like a machine that swaps or pauses. On Linux, it is frozen when Freeze
// returns. On systems without Unix signals, the error is errors.ErrUnsupported.
func (s *Server) Freeze() error {
	return s.signal("freeze", (*process).freeze, true)
}

// Thaw continues a frozen server (SIGCONT). It does nothing to a server that is not frozen.
func (s *Server) Thaw() error {
	return s.signal("thaw", (*process).thaw, false)
}

func (s *Server) signal(verb string, send func(*process) error, frozen bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errNotRunning
	if s.running() {
		s.log.Debug(verb, "server", s.id, "pid", s.proc.pid())
		err = send(s.proc)
	}
	if err != nil {
		return fmt.Errorf("ensemble: %s server %d: %w", verb, s.id, err)
	}
	s.frozen = frozen
	return nil
}

// Log returns the end of the server's log of all its runs, 64 KiB at most. It also works
// after Stop.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return s.tail
	}
	return readTail(s.dir)
}

// expected returns the process if it should serve: the server was started, and was neither
// killed nor frozen since. The process may have ended by itself.
func (s *Server) expected() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.killed || s.frozen {
		return nil
	}
	return s.proc
}

// The methods below are called with s.mu held.

func (s *Server) running() bool { return s.proc != nil && s.proc.running() }

func (s *Server) kill() error {
	s.killed = true
	if !s.running() {
		return nil
	}
	s.log.Debug("kill", "server", s.id, "pid", s.proc.pid())
	if err := s.proc.kill(); err != nil {
		return fmt.Errorf("ensemble: server %d: %w", s.id, err)
	}
	s.frozen = false
	return nil
}

func (s *Server) launch() (*process, error) {
	if s.stopped {
		return nil, errStopped
	}
	output, err := os.OpenFile(filepath.Join(s.dir, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close() // the process has its own descriptor
	cmd := javaCommand(s.cfg, s.dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, output, output
	proc, err := s.launcher.launch(s.host, cmd)
	if err != nil {
		return nil, err
	}
	s.log.Debug("start", "server", s.id, "pid", proc.pid(), "addr", s.Addr(), "dir", s.dir)
	s.proc, s.killed, s.frozen = proc, false, false
	return proc, nil
}

// shutdown kills the server, which cannot be started again. It locks s.mu itself.
func (s *Server) shutdown() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.kill()
	if !s.stopped {
		s.tail, s.stopped = readTail(s.dir), true
	}
	return err
}

// writeFiles writes the files that ZooKeeper reads at its start.
func (s *Server) writeFiles(cfg Config, all []*Server) error {
	files := maps.Clone(loggingFiles)
	files["zoo.cfg"] = formatProperties(s.zooCfg(cfg, all))
	files["data/myid"] = fmt.Sprintln(s.id)
	if cfg.TLS != nil {
		stores, err := cfg.TLS.stores()
		if err != nil {
			return fmt.Errorf("ensemble: TLS: %w", err)
		}
		maps.Copy(files, stores)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "data"), 0o700); err != nil {
		return fmt.Errorf("ensemble: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(files[name]), 0o600); err != nil {
			return fmt.Errorf("ensemble: %w", err)
		}
	}
	return nil
}
