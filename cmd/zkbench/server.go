package main

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// server is what is measured.
type server struct {
	addrs []string
	about record.Server
}

// startServer starts, or finds, what the flags say.
func startServer(ctx context.Context, s settings, end *cleanup) (server, error) {
	switch {
	case s.ensemble > 0:
		return startEnsemble(ctx, s.ensemble, end)
	case len(s.servers.values) > 0:
		return findServers(ctx, s.servers.values)
	}
	return startEmbedded(ctx, end)
}

// findServers describes servers that run already.
func findServers(ctx context.Context, addrs []string) (server, error) {
	about, err := describe(ctx, addrs)
	return server{addrs, about}, err
}

// startEmbedded starts a server in this process.
func startEmbedded(ctx context.Context, end *cleanup) (server, error) {
	s, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		return server{}, fmt.Errorf("start the embedded server: %w", err)
	}
	end.add(s.Close)
	srv, err := findServers(ctx, []string{s.Addr()})
	srv.about.Mode = "embedded"
	return srv, err
}

// startEnsemble starts n real servers on this machine.
func startEnsemble(ctx context.Context, n int, end *cleanup) (server, error) {
	e, err := ensemble.Start(ctx, ensemble.Config{Servers: n})
	if err != nil {
		return server{}, fmt.Errorf("start %d ZooKeeper server(s): %w", n, err)
	}
	end.add(e.Stop)
	return findServers(ctx, e.Addrs())
}
