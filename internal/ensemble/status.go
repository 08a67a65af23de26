package ensemble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/fourletter"
)

const (
	pollInterval = 20 * time.Millisecond // ZooKeeper has no event for "serves now"
	pollTimeout  = time.Second           // for one answer: the server may be frozen
)

// Word sends one of ZooKeeper's four-letter words (srvr, mntr, cons, wchs, ...)
// and returns the whole answer. It waits until ctx ends, or 10 s if ctx has no
// deadline: a frozen server accepts the connection and does not answer. If the server
// cannot serve, the error is [fourletter.ErrNotServing].
func (s *Server) Word(ctx context.Context, word string) (string, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wordTimeout)
		defer cancel()
	}
	answer, err := fourletter.Dial(s.host.dial).Ask(ctx, s.Addr(), word)
	if err != nil {
		err = fmt.Errorf("ensemble: server %d: %w", s.id, err)
	}
	return answer, err
}

// Mode returns the server's role. It waits and fails like Word.
func (s *Server) Mode(ctx context.Context) (Mode, error) {
	answer, err := s.Word(ctx, "srvr")
	if err != nil {
		return "", err
	}
	return parseMode(answer)
}

// serves reports whether this server, and no other, serves on all its ports.
func (s *Server) serves(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	if _, err := s.Mode(ctx); err != nil {
		return false
	}
	return s.answersItself(ctx) && s.securePortOpen(ctx)
}

// answersItself reports whether this server answers, and not another one. After a port was
// picked, and before this server binds it, another ZooKeeper may begin to listen there.
// Then this server ends a moment later, without having served.
func (s *Server) answersItself(ctx context.Context) bool {
	conf, err := s.Word(ctx, "conf")
	return err == nil && strings.Contains(conf, "dataDir="+filepath.Join(s.dir, "data"))
}

func (s *Server) securePortOpen(ctx context.Context) bool {
	if s.SecureAddr() == "" {
		return true
	}
	conn, err := s.host.dial(ctx, "tcp", s.SecureAddr())
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// waitServing waits until the server serves, its process ends, or ctx ends.
func (s *Server) waitServing(ctx context.Context, proc *process) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for !s.serves(ctx) {
		select {
		case <-proc.done:
			return s.ended(proc, "before it served")
		case <-ctx.Done():
			return fmt.Errorf("ensemble: server %d does not serve: %w\n%s", s.id, context.Cause(ctx), s.logExcerpt())
		case <-ticker.C:
		}
	}
	return nil
}

func (s *Server) ended(proc *process, when string) error {
	err := proc.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	// The exit status does not show this error; only the log does.
	if log := s.Log(); strings.Contains(log, "Address already in use") || strings.Contains(log, "BindException") {
		err = fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return fmt.Errorf("ensemble: server %d ended %s: %w\n%s", s.id, when, err, s.logExcerpt())
}

func (s *Server) logExcerpt() string {
	if excerpt := lastLines(s.Log(), errorTail); excerpt != "" {
		return "last lines of its log:\n" + excerpt
	}
	return "its log is empty"
}

// Mode is the role of a server that serves.
type Mode string

// The modes that ZooKeeper reports.
const (
	Standalone Mode = "standalone"
	Leader     Mode = "leader"
	Follower   Mode = "follower"
	Observer   Mode = "observer"
)

// wordTimeout is for a ctx without a deadline.
const wordTimeout = 10 * time.Second

// dial connects from within the host's network. So it reaches the server even if the
// network between the hosts is broken.
func (h Host) dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	err = h.Do(func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// parseMode finds the mode in an answer to srvr.
func parseMode(answer string) (Mode, error) {
	if mode := fourletter.Pairs(answer, ": ")["Mode"]; mode != "" {
		return Mode(mode), nil
	}
	return "", fmt.Errorf("no mode in the answer %.200q", answer)
}
