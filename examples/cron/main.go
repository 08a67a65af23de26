// Command cron runs a command at regular times, on one of several machines. Start it with the
// same arguments on all of them:
//
//	go build -o bin/ ./examples/cron ./cmd/zkrecipes-plugin
//	export ZKRECIPES_SERVERS=127.0.0.1:2181 ZKRECIPES_PLUGIN_DIR=bin
//	bin/cron -every 1m /examples/report ./report.sh
//
// The command runs at most once for each time, because cron records the time in ZooKeeper
// before it starts the command. To run it at least once, record the time afterwards. cron
// skips a time while the command still runs for an earlier one.
//
// The command gets the time in $CRON_TIME, and in $CRON_TOKEN the fencing token for its
// writes. Package host/hostconfig reads the configuration.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func main() {
	every := flag.Duration("every", time.Minute, "`duration` between two times")
	flag.Parse()
	if flag.NArg() < 2 || *every <= 0 {
		fmt.Fprintln(os.Stderr, "usage: cron [-every duration] PATH COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	j := &job{path: flag.Arg(0), command: flag.Args()[1:]}
	if err := run(ctx, j, *every); err != nil {
		fmt.Fprintf(os.Stderr, "cron: %v\n", err)
		os.Exit(1)
	}
}

// run runs the job at each multiple of every, until ctx ends.
func run(ctx context.Context, j *job, every time.Duration) error {
	cfg, err := hostconfig.Load("")
	if err != nil {
		return err
	}
	j.zookeeper = cfg.ZooKeeper
	cfg.Plugin.Logger = hclog.New(&hclog.LoggerOptions{Name: "cron", Level: cfg.LogLevel})
	supervisor, err := host.Supervise(ctx, host.SupervisorConfig{Plugin: cfg.Plugin})
	if err != nil {
		return err
	}
	defer supervisor.Close(context.Background())
	j.open = supervisor.Open
	for {
		next := time.Now().Truncate(every).Add(every)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(next)):
		}
		switch err := j.once(ctx, next.UTC()); {
		case errors.Is(err, recipes.ErrInvalid):
			return err // a retry would fail too
		case err != nil && ctx.Err() == nil:
			fmt.Fprintf(os.Stderr, "cron: %s: %v\n", next.UTC().Format(time.RFC3339), err)
		}
	}
}

// job is a command, and the path in ZooKeeper for its lock and its times.
type job struct {
	open      recipes.Opener
	zookeeper recipes.SessionConfig
	path      string
	command   []string
}

// once runs the command for a time, unless another machine runs it or has run it.
func (j *job) once(ctx context.Context, when time.Time) (err error) {
	session, err := j.open(ctx, j.zookeeper)
	if err != nil {
		return err
	}
	defer session.Close(context.Background())
	lock, err := session.Lock(j.path+"/lock", recipes.LockConfig{})
	if err != nil {
		return err
	}
	hold, err := lock.TryAcquire(ctx)
	if errors.Is(err, recipes.ErrContended) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release(context.Background())) }()
	if mine, err := j.claim(ctx, session, when); !mine {
		return err
	}
	return j.run(ctx, hold, when)
}

// claim records the time. It returns false if this time, or a later one, was recorded before.
func (j *job) claim(ctx context.Context, session recipes.Recipes, when time.Time) (bool, error) {
	times, err := session.Configuration(j.path + "/times")
	if err != nil {
		return false, err
	}
	const key = "last"
	last, err := times.Get(ctx, key)
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		last.Revision = recipes.NoRevision
	case err != nil:
		return false, err
	default:
		before, err := time.Parse(time.RFC3339, string(last.Value))
		if err != nil {
			return false, err
		}
		if !when.After(before) {
			return false, nil
		}
	}
	_, err = times.Set(ctx, key, []byte(when.Format(time.RFC3339)), last.Revision)
	return err == nil, err
}

// run runs the command, and terminates it if the lock is lost.
func (j *job) run(ctx context.Context, hold recipes.Hold, when time.Time) error {
	held, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-hold.Done():
			cancel()
		case <-held.Done():
		}
	}()
	cmd := exec.CommandContext(held, j.command[0], j.command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "CRON_TIME="+when.Format(time.RFC3339), fmt.Sprintf("CRON_TOKEN=%d", hold.Token()))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second // after which the command is killed
	return errors.Join(cmd.Run(), hold.Err())
}
