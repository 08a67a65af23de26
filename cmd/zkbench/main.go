// Zkbench measures how fast ZooKeeper's locks and leader elections change hands
// and what that costs, by the number of contenders and the way in which they
// wait. Its results are in the Go benchmark format, for benchstat.
//
//	zkbench                  the ways of waiting compared, on an embedded server
//	zkbench run -h           what else it can measure
//	zkbench compare A B      what became better or worse, for a build to depend on
//	zkbench help             sweep, plan, slo, report and serve
//
// The command is thin: flags, servers and transports are here, the experiment is
// package bench.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(Main()) }

// Main is main with an exit code.
func Main() int {
	return command{stdout: os.Stdout, stderr: os.Stderr, transports: transports, terminal: terminal}.process()
}

// process runs the command as this process, and returns its exit code.
func (c command) process() int {
	// The first interrupt ends the run with what was measured so far; a second one
	// kills, because the first takes itself away. A terminal that goes away is one too,
	// unless nohup said that it is not. It says so twice, by its shell and when that
	// has ended: after the first it is ignored.
	interrupts := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		interrupts = append(interrupts, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), interrupts...)
	defer stop()
	context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP)
		stop()
	})
	// A reader of stdout that goes away is an error of Write, after which the
	// run cleans up, and not a signal that kills it.
	signal.Ignore(syscall.SIGPIPE)
	return c.run(ctx, os.Args[1:])
}
