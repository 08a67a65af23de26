package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Variables that the command gets.
const (
	tokenEnv = "ZKRECIPES_TOKEN" // the fencing token
	znodeEnv = "ZKRECIPES_ZNODE" // the path of the znode whose existence is the grant
	pathEnv  = "ZKRECIPES_PATH"  // the path that was given
)

// guard is what lock and elect have in common: a command that runs while
// something is granted.
type guard struct {
	timeout, grace time.Duration
	data           string
	path           string
	argv           []string
}

// grant is what a guard waits for.
type grant struct {
	recipes.Grant
	giveBack func(context.Context) error
	started  func(context.Context) error // called when the command runs; may be nil
}

func (g *guard) flags(f *flag.FlagSet) {
	f.DurationVar(&g.timeout, "timeout", 0, "give up if it is not granted in this time, connecting included; 0 waits for ever")
	f.DurationVar(&g.grace, "grace", 5*time.Second, "how long a command whose hold is lost may take to end after its TERM,\nbefore it is killed")
	f.StringVar(&g.data, "data", "", "`text` to store in line, which contenders shows; by default this host, process\nand command")
}

const guardHelp = `The command gets the fencing token in $ZKRECIPES_TOKEN: pass it on to what the
command changes, so that it can refuse an older one. $ZKRECIPES_PATH is PATH, and
$ZKRECIPES_ZNODE the znode whose existence is the grant.

When the hold is lost, the command is sent TERM and, if it has not ended after
-grace, KILL. Without a terminal it has a process group of its own, and all of
the group gets them. Signals that zkrecipes gets are passed on to the command;
before the command runs they end the wait, and nothing is left in line. On Linux
the command is killed if zkrecipes is.

Exit code: that of the command, 128+n if signal n ended it, and otherwise

    2    wrong usage or configuration; nothing was done
    123  the hold was lost, whatever the command returned
    124  it was not granted: somebody else holds it, or the time has passed
    125  zkrecipes failed, for example to reach ZooKeeper
    126  the command cannot be run
    127  the command was not found`

func (g *guard) arguments(args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("PATH and a command are missing")
	case len(args) == 1 || args[1] != "--":
		return errors.New(`the command follows PATH and "--"; flags go before PATH`)
	case len(args) == 2:
		return errors.New(`no command follows "--"`)
	case g.timeout < 0 || g.grace < 0:
		return errors.New("-timeout and -grace must not be negative")
	}
	if err := recipes.ValidatePath(args[0]); err != nil {
		return err
	}
	g.path, g.argv = args[0], args[2:]
	if g.data == "" {
		host, _ := os.Hostname()
		g.data = fmt.Sprintf("%s[%d] %s", host, os.Getpid(), filepath.Base(g.argv[0]))
	}
	return nil
}

func (g *guard) otherwise() int { return exitOwn }

// run waits for the grant and runs the command under it.
func (g *guard) run(ctx context.Context, t *tool, out *output, acquire func(context.Context, recipes.Session) (grant, error)) error {
	program, err := lookUp(g.argv[0]) // before anybody waits for it
	if err != nil {
		return err
	}
	r := newRelay()
	defer r.stop()
	ctx, stop := r.interruptible(ctx)
	defer stop()
	waiting := ctx
	if g.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, g.timeout)
		defer cancel()
	}
	inLine := false
	var result *exitError // of the command
	err = t.withSession(waiting, out, func(s recipes.Session) error {
		inLine = true
		h, err := acquire(waiting, s)
		if err != nil {
			return err
		}
		out.event(event{Event: "acquired", Path: g.path, Token: int64(h.Token())}, "")
		ended := g.hold(h, out, r, program)
		result = &ended
		return nil
	})
	var interrupted interruption
	switch {
	case result != nil:
		return *result
	case errors.As(context.Cause(ctx), &interrupted):
		return exitError{exitSignal + interrupted.number(), fmt.Errorf("%w before it was granted", interrupted)}
	case errors.Is(err, recipes.ErrContended):
		return exitWith(exitTimeout, "%s is held by somebody else; zkrecipes contenders %s shows whom", g.path, g.path)
	case inLine && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, recipes.ErrUnavailable):
		return exitWith(exitTimeout, "%s was not granted in %v; zkrecipes contenders %s shows who is ahead", g.path, g.timeout, g.path)
	}
	return err
}

// lookUp finds a program as a shell does.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist):
		return "", exitError{exitMissing, fmt.Errorf("command %s: %w", name, err)}
	case err != nil:
		return "", exitError{exitCannot, fmt.Errorf("command %s: %w", name, err)}
	}
	return path, nil
}

// hold runs the command under a grant and gives the grant back.
func (g *guard) hold(h grant, out *output, r *relay, program string) exitError {
	lost := h.Lost() // asks to be told, from now on
	c, err := startChild(program, g.argv, []string{
		tokenEnv + "=" + strconv.FormatInt(int64(h.Token()), 10), znodeEnv + "=" + h.Znode(), pathEnv + "=" + g.path,
	})
	if err != nil {
		g.release(h, out)
		return exitError{exitCannot, fmt.Errorf("command %s: %w", g.argv[0], err)}
	}
	r.to(c)
	if h.started != nil {
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		if err := h.started(ctx); err != nil && h.Err() == nil {
			out.say(fmt.Sprintf("the leader could not be acknowledged: %v", err))
		}
	}
	select {
	case <-c.exited:
	case <-lost:
		g.end(c, h, out)
	}
	r.to(nil)
	status := c.exitCode()
	out.event(event{Event: "exited", Path: g.path, Code: &status}, "")
	if err := h.Err(); err != nil {
		return exitError{exitLost, fmt.Errorf("the hold on %s was lost while the command ran: %w", g.path, err)}
	}
	g.release(h, out)
	return exitError{code: status}
}

// end ends a command whose hold is lost.
func (g *guard) end(c *child, h grant, out *output) {
	out.event(event{Event: "lost", Path: g.path, Token: int64(h.Token()), Cause: fmt.Sprint(h.Err())},
		fmt.Sprintf("lost %s, ending the command: %v", g.path, h.Err()))
	c.terminate()
	grace := time.NewTimer(g.grace)
	defer grace.Stop()
	select {
	case <-c.exited:
	case <-grace.C:
		out.event(event{Event: "killed", Path: g.path}, fmt.Sprintf("the command has not ended in %v, killing it", g.grace))
		c.kill()
		<-c.exited
	}
}

func (g *guard) release(h grant, out *output) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := h.giveBack(ctx); err != nil {
		out.say(fmt.Sprintf("%s could not be given back at once, it is free at the session's timeout at the latest: %v", g.path, err))
		return
	}
	out.event(event{Event: "released", Path: g.path}, "")
}
