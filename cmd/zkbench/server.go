package main

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// server is what is measured.
type server struct {
	words
	session recipes.SessionConfig // of sessions on it
	about   record.Server
	local   bool              // it was started for this run, as processes of this machine
	facts   map[string]string // that it does not tell itself
}

// figures reads the servers' own figures. The processor time of servers that were
// started for this run is that of this process's children, as far as the system
// tells; mntr does not have it.
func (s server) figures(ctx context.Context) (map[string]float64, error) {
	figures, err := s.mntr(ctx)
	if s.local {
		if seconds, ok := childrenCPU(); ok {
			figures["process_cpu_seconds"] = seconds
		}
	}
	return figures, err
}

// startServer starts, or finds, what the flags say.
func startServer(ctx context.Context, w where, end *cleanup) (server, error) {
	switch {
	case w.ensemble > 0:
		return startEnsemble(ctx, w.ensemble, end)
	case len(w.servers.values) > 0:
		cfg, err := w.access.config(w.servers.values)
		if err != nil {
			return server{}, err
		}
		return findServers(ctx, cfg)
	}
	return startEmbedded(ctx, end)
}

// findServers describes servers that run already.
func findServers(ctx context.Context, cfg recipes.SessionConfig) (server, error) {
	w, err := newWords(cfg)
	if err != nil {
		return server{}, err
	}
	about, err := w.describe(ctx)
	return server{words: w, session: cfg, about: about}, err
}

// startEmbedded starts a server in this process.
func startEmbedded(ctx context.Context, end *cleanup) (server, error) {
	s, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		return server{}, fmt.Errorf("start the embedded server: %w", err)
	}
	end.add(s.Close)
	srv, err := findServers(ctx, recipes.SessionConfig{Servers: []string{s.Addr()}})
	srv.about.Mode = "embedded"
	srv.facts = map[string]string{
		"forceSync": "no: it keeps everything in memory", "disk": "none", "fsync": "none", "caches": "none",
		"processors": "shared with zkbench", "memory": "shared with zkbench",
	}
	return srv, err
}

// startEnsemble starts n real servers on this machine.
func startEnsemble(ctx context.Context, n int, end *cleanup) (server, error) {
	e, err := ensemble.Start(ctx, ensemble.Config{Servers: n, Properties: map[string]string{"maxClientCnxns": "0"}})
	if err != nil {
		return server{}, fmt.Errorf("start %d ZooKeeper server(s): %w", n, err)
	}
	end.add(e.Stop)
	srv, err := findServers(ctx, recipes.SessionConfig{Servers: e.Addrs()})
	srv.local = true
	srv.facts = map[string]string{
		"forceSync": "yes (ZooKeeper's default)", "caches": "ZooKeeper's defaults",
		"jute.maxbuffer": "ZooKeeper's default",
		"processors":     "shared with zkbench", "memory": "shared with zkbench",
	}
	return srv, err
}
