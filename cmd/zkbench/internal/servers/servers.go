// Package servers has the ZooKeeper servers to measure: it starts or finds them, and reads their
// figures.
package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/machine"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Server is the ZooKeeper to measure.
type Server struct {
	words
	Session recipes.SessionConfig // for its sessions
	About   record.Server

	Ensemble *ensemble.Ensemble // started for this run; nil for others
	facts    map[string]string  // facts that the server itself does not report
}

// Figures reads the servers' own figures. mntr has no processor time. For servers that were
// started for this run, it is that of this process's children, where the system has it.
func (s Server) Figures(ctx context.Context) (map[string]float64, error) {
	figures, err := s.mntr(ctx)
	if s.Ensemble != nil {
		if seconds, ok := machine.ServersCPU(); ok {
			figures["process_cpu_seconds"] = seconds
		}
	}
	return figures, err
}

// Start starts the servers of the flags, or finds the running ones. It adds the end of what it has
// started to end.
func Start(ctx context.Context, w Flags, end *exit.Cleanup) (Server, error) {
	switch {
	case w.Ensemble > 0:
		return StartEnsemble(ctx, w.Ensemble, end)
	case len(w.Servers) > 0:
		cfg, err := w.access.config(w.Servers)
		if err != nil {
			return Server{}, err
		}
		return findServers(ctx, cfg)
	}
	return startEmbedded(ctx, end)
}

func findServers(ctx context.Context, cfg recipes.SessionConfig) (Server, error) {
	w, err := newWords(cfg)
	if err != nil {
		return Server{}, err
	}
	about, err := w.describe(ctx)
	return Server{words: w, Session: cfg, About: about}, err
}

func startEmbedded(ctx context.Context, end *exit.Cleanup) (Server, error) {
	s, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		return Server{}, fmt.Errorf("start the embedded server: %w", err)
	}
	end.Add(s.Close)
	srv, err := findServers(ctx, recipes.SessionConfig{Servers: []string{s.Addr()}})
	srv.About.Mode = "embedded"
	srv.facts = map[string]string{
		"forceSync": "no: it keeps everything in memory", "disk": "none", "fsync": "none", "caches": "none",
		"processors": "shared with zkbench", "memory": "shared with zkbench",
	}
	return srv, err
}

// StartEnsemble starts real servers, and adds their end to end.
func StartEnsemble(ctx context.Context, n int, end *exit.Cleanup) (Server, error) {
	e, err := ensemble.Start(ctx, ensemble.Config{Servers: n, Properties: map[string]string{"maxClientCnxns": "0"}})
	if err != nil {
		return Server{}, fmt.Errorf("start %s: %w", english.Count(n, "ZooKeeper server"), err)
	}
	end.Add(func() (ended error) {
		if ctx.Err() == nil { // an interrupt of the terminal ends them too, except on Linux
			ended = e.Ended()
		}
		return errors.Join(ended, e.Stop())
	})
	srv, err := findServers(ctx, recipes.SessionConfig{Servers: e.Addrs()})
	srv.Ensemble = e
	srv.facts = map[string]string{
		"forceSync": "yes (ZooKeeper's default)", "caches": "ZooKeeper's defaults",
		"jute.maxbuffer": "ZooKeeper's default",
		"processors":     "shared with zkbench", "memory": "shared with zkbench",
	}
	return srv, err
}

// Addrs returns the addresses of the servers.
func (s Server) Addrs() []string { return s.addrs }

// Victim returns the server that a fault kills: the leader, or the first follower.
func (s Server) Victim(ctx context.Context, v timeline.Victim) (timeline.Server, error) {
	leader, err := s.Ensemble.Leader(ctx)
	if err != nil || v == timeline.Leader {
		return leader, err
	}
	others := s.Ensemble.Servers()
	i := slices.IndexFunc(others, func(o *ensemble.Server) bool { return o != leader && o.Pid() != 0 })
	if i < 0 {
		return nil, errors.New("there is no follower")
	}
	return others[i], nil
}
