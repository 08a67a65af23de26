// Command cron runs a command at regular times, on one of several machines. Start it with the
// same arguments on all of them:
//
//	go build -o bin/ ./examples/cron ./cmd/...
//	bin/zkbench serve -listen 127.0.0.1:2181 & # or a ZooKeeper
//	export ZKRECIPES_SERVERS=127.0.0.1:2181
//	bin/cron -every 10s /examples/report date
//
// The command runs at most once in each period, by the clock of ZooKeeper's leader, because cron
// counts a turn before it starts the command. To run it at least once, count the turn afterwards.
// cron skips a time while the command still runs for an earlier one.
//
// The command gets in $CRON_TIME when its turn began, and in $CRON_TOKEN the fencing token for its
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
	// The period is shorter than the time between two times, for a timer that fires early.
	j := &job{path: flag.Arg(0), command: flag.Args()[1:], period: *every - *every/10}
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
		switch err := j.once(ctx); {
		case errors.Is(err, recipes.ErrInvalid):
			return err // a retry would fail too
		case err != nil && ctx.Err() == nil:
			fmt.Fprintf(os.Stderr, "cron: %s: %v\n", next.UTC().Format(time.RFC3339), err)
		}
	}
}

// job is a command, and the path in ZooKeeper for its lock and the record of its last turn.
type job struct {
	open      recipes.Opener
	zookeeper recipes.SessionConfig
	path      string
	command   []string
	period    time.Duration
}

// once runs the command, unless another machine runs it or has run it in this period.
func (j *job) once(ctx context.Context) (err error) {
	session, err := j.open(ctx, j.zookeeper)
	if err != nil {
		return err
	}
	defer session.Close(context.Background())
	lock, err := session.Lock(j.path, recipes.LockConfig{})
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
	record, err := session.Configuration(j.path)
	if err != nil {
		return err
	}
	turn, err := recipes.OncePer(ctx, hold, record, j.period)
	if errors.As(err, new(*recipes.NotDueError)) {
		return nil
	}
	if err == nil {
		err = turn.Count(ctx)
	}
	if err != nil {
		return err
	}
	return j.run(ctx, hold, turn.Began())
}

// run runs the command, and terminates it if the lock is lost.
func (j *job) run(ctx context.Context, hold recipes.Hold, began time.Time) error {
	held, stop := recipes.WithHold(ctx, hold)
	defer stop()
	cmd := exec.CommandContext(held, j.command[0], j.command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "CRON_TIME="+began.UTC().Format(time.RFC3339Nano), fmt.Sprintf("CRON_TOKEN=%d", hold.Token()))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second // after which the command is killed
	return errors.Join(cmd.Run(), hold.Err())
}
