// Package ensemble starts, stops, freezes and kills real Apache ZooKeeper servers on
// loopback, one server or an ensemble. It is for tests that need a real server and for
// zkbench's measurements.
//
// Use it in this order:
//
//  1. [Find] an installed ZooKeeper and its Java, or let Start do it.
//  2. [Start] an ensemble. It returns when every server serves.
//  3. Give [Ensemble.Connect] to a client. Find the [Ensemble.Leader],
//     [Server.Kill], [Server.Restart], [Server.Freeze] and [Server.Thaw] servers,
//     and read their figures with [Server.Word].
//  4. Call [Ensemble.Stop]. It leaves no process and no file behind.
//
// The servers have ZooKeeper's default configuration. [Config.NoSync] and
// [Config.FastStart] make tests quick and measurements wrong: NoSync skips fsync, and with
// FastStart the JVM compiles less.
//
// On Linux the servers are killed when the process that started them ends for any reason.
// On other systems they keep running after a SIGKILL of that process. Freezing needs Unix
// signals.
//
// Tests use the subpackage ensembletest. If no ZooKeeper is installed, it skips them with
// a message.
package ensemble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Ensemble is a set of ZooKeeper servers that were started together. Its
// methods may be called from several goroutines.
type Ensemble struct {
	installation Installation
	dir          string
	launcher     *launcher
	servers      []*Server
	stopping     sync.Once
	stopErr      error
}

// Installation is the ZooKeeper that the servers run.
func (e *Ensemble) Installation() Installation { return e.installation }

// Servers are all servers, running or not, in order.
func (e *Ensemble) Servers() []*Server { return append([]*Server(nil), e.servers...) }

// Server is the i-th server, counted from 0.
func (e *Ensemble) Server(i int) *Server { return e.servers[i] }

// Addrs are the client addresses of all servers, running or not, as host:port.
func (e *Ensemble) Addrs() []string {
	addrs := make([]string, len(e.servers))
	for i, s := range e.servers {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Connect is the connect string for ZooKeeper's clients.
func (e *Ensemble) Connect() string { return strings.Join(e.Addrs(), ",") }

// WaitServing waits until every server that was neither killed nor frozen serves. It
// fails if ctx ends first, or if one of these servers ends.
func (e *Ensemble) WaitServing(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range e.servers {
		if proc := s.expected(); proc != nil {
			group.Go(func() error { return s.waitServing(ctx, proc) })
		}
	}
	return group.Wait()
}

// Leader waits until exactly one server says that it leads, and returns that server. A
// standalone server counts as leader. After a former leader is thawed, two servers say for
// a moment that they lead.
func (e *Ensemble) Leader(ctx context.Context) (*Server, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if leaders := e.leaders(ctx); len(leaders) == 1 {
			return leaders[0], nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("ensemble: no leader: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

func (e *Ensemble) leaders(ctx context.Context) []*Server {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	modes := make([]Mode, len(e.servers))
	var asking sync.WaitGroup
	for i, s := range e.servers {
		if s.expected() != nil {
			asking.Go(func() { modes[i], _ = s.Mode(ctx) }) // a server that does not answer does not lead
		}
	}
	asking.Wait()
	var leaders []*Server
	for i, mode := range modes {
		if mode == Leader || mode == Standalone {
			leaders = append(leaders, e.servers[i])
		}
	}
	return leaders
}

// AwaitEnd waits until one of the servers that now run ends, or until ctx ends.
func (e *Ensemble) AwaitEnd(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var waiting sync.WaitGroup
	for _, s := range e.servers {
		if proc := s.expected(); proc != nil {
			waiting.Go(func() {
				defer cancel()
				select {
				case <-proc.done:
				case <-ctx.Done():
				}
			})
		}
	}
	waiting.Wait()
}

// Ended returns an error for the servers that have ended by themselves, with the ends of
// their logs. After Stop it returns nil.
func (e *Ensemble) Ended() error {
	var errs []error
	for _, s := range e.servers {
		if proc := s.expected(); proc != nil && !proc.running() {
			errs = append(errs, s.ended(proc, "by itself"))
		}
	}
	return errors.Join(errs...)
}

// Stop kills all servers, waits until they are gone and removes their files.
// Every call returns the result of the first.
func (e *Ensemble) Stop() error {
	e.stopping.Do(func() { e.stopErr = e.stop() })
	return e.stopErr
}

func (e *Ensemble) stop() error {
	var errs []error
	for _, s := range e.servers {
		errs = append(errs, s.shutdown())
	}
	e.launcher.close()
	return errors.Join(append(errs, os.RemoveAll(e.dir))...)
}
