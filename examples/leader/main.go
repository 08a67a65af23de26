// Command leader is a service with one leader at a time. Each instance campaigns, works while
// it leads, and campaigns again after a loss. Start any number of instances, on any number of
// machines:
//
//	go build -o bin/ ./examples/leader ./cmd/...
//	bin/zkbench serve -listen 127.0.0.1:2181 & # or a ZooKeeper
//	export ZKRECIPES_SERVERS=127.0.0.1:2181
//	bin/leader -name one & bin/leader -name two &
//
// Package host/hostconfig reads the configuration.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func main() {
	path := flag.String("path", "/examples/leader", "`path` of the election in ZooKeeper")
	name := flag.String("name", "unnamed", "`name` of this instance, visible to the others")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *path, *name); err != nil {
		fmt.Fprintf(os.Stderr, "leader: %v\n", err)
		os.Exit(1)
	}
}

// run campaigns and leads until ctx ends.
func run(ctx context.Context, path, name string) error {
	cfg, err := hostconfig.Load("")
	if err != nil {
		return err
	}
	cfg.Plugin.Logger = hclog.New(&hclog.LoggerOptions{Name: "leader", Level: cfg.LogLevel})
	supervisor, err := host.Supervise(ctx, host.SupervisorConfig{Plugin: cfg.Plugin})
	if err != nil {
		return err
	}
	defer supervisor.Close(context.Background())
	for ctx.Err() == nil {
		err := term(ctx, supervisor.Open, cfg.ZooKeeper, path, name)
		switch {
		case ctx.Err() != nil || err == nil:
		case errors.Is(err, recipes.ErrSessionLost), errors.Is(err, recipes.ErrNotHeld), errors.Is(err, recipes.ErrUnavailable):
			// Everything of the old session is gone. Campaign in a new one.
			fmt.Printf("%s: %v\n", name, err)
			pause(ctx, time.Second)
		default:
			return err // a retry would fail too
		}
	}
	return nil
}

// term opens a session, campaigns, and works until the leadership is lost or ctx ends.
func term(ctx context.Context, open recipes.Opener, cfg recipes.SessionConfig, path, name string) error {
	session, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	defer session.Close(context.Background())
	election, err := session.Election(path, recipes.ElectionConfig{})
	if err != nil {
		return err
	}
	leadership, err := election.Campaign(ctx, []byte(name))
	if err != nil {
		return err
	}
	fmt.Printf("%s leads with token %d\n", name, leadership.Token())
	select {
	case <-leadership.Done(): // stop the work here, at once
		return leadership.Err()
	case <-ctx.Done():
	}
	if err := leadership.Resign(context.Background()); err != nil {
		return err
	}
	fmt.Printf("%s has resigned\n", name)
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
