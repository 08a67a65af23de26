// Package run contains the verbs that run a command under a grant: lock, elect,
// double-barrier, group join, names register, queue work and shares.
package run

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/status"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Verbs are the verbs of this package.
var Verbs = []verb.Verb{
	doubleBarrier, elect, groupJoin, lock, namesRegister, queueWork, shares,
}

// Variables of the command.
const (
	tokenEnv = "ZKRECIPES_TOKEN" // the fencing token
	znodeEnv = "ZKRECIPES_ZNODE" // the path of the znode whose existence is the grant
	pathEnv  = "ZKRECIPES_PATH"  // the argument PATH
)

// guard is embedded by the verbs of this package. It runs a command while a grant is held.
type guard struct {
	timeout, grace time.Duration
	try            bool // do not wait; only lock has the flag
	data           string
	path           string
	argv           []string

	t       *verb.Tool // from begin
	program string     // argv[0], found
	relay   *job.Relay

	close bool          // the command inherits no descriptor of life
	life  *job.Lifetime // if zkrecipes is killed, keeps the grant while processes of the command run; may be nil

	lineKind recipes.Kind // of the wait queue whose contenders are shown; "": none
	verbose  bool         // show them without a terminal too

	abandon          bool          // after a loss, do not wait for a command that cannot be signalled
	warning          os.Signal     // sent to the command when its hold is in danger; nil: none
	timeoutGranted   time.Duration // of the session
	minHold, maxHold time.Duration // 0: no limit; only lock has the flags

	retry time.Duration // after a loss, wait this long for another grant; only lock has the flag
	again bool          // campaign again after a leadership has ended; only elect has the flag

	status string         // the address of served, or ""
	served *status.Server // nil without -status
}

// grant is the result of a guard's wait.
type grant struct {
	recipes.Grant
	giveBack func(context.Context) error
	together bool                        // giveBack waits until all other members give back too
	started  func(context.Context) error // called when the command runs; may be nil
	count    func(context.Context) error // called when the command has succeeded; may be nil
	asked    <-chan struct{}             // closed when another client asks for the grant; may be nil
}

func (g *guard) Flags(f *flag.FlagSet) {
	verb.DurationVar(f, &g.timeout, "timeout", 0, helptext.Common("give up if it is not granted within this `duration`, including the time to connect; 0\nwaits for ever"))
	g.graceFlag(f)
	f.BoolVar(&g.abandon, "abandon", false, "after a loss, exit with 123 at once if the command belongs to another user and cannot be\nended; without it, zkrecipes waits for its end")
	f.Func("warn-signal", "send this `signal`, such as USR1, to the command when no server has answered for so long\nthat a third of the session timeout is left until the loss", func(name string) (err error) {
		g.warning, err = job.ParseSignal(name)
		return err
	})
	f.StringVar(&g.data, "data", "", "`text` that zkrecipes contenders shows; by default this host, process and command")
	g.closeFlag(f)
}

func (g *guard) graceFlag(f *flag.FlagSet) {
	verb.DurationVar(f, &g.grace, "grace", 5*time.Second, "kill the command if it has not ended this `duration` after its TERM")
}

// closeFlag defines -close, which flock has too.
func (g *guard) closeFlag(f *flag.FlagSet) {
	f.BoolVar(&g.close, "close", false, "if zkrecipes is killed, release PATH at once, even if processes of the command still run")
}

// statusFlag defines -status, for verbs that can wait or run for long.
func (g *guard) statusFlag(f *flag.FlagSet) {
	f.Func("status", "serve /healthz, /leader and /metrics by HTTP at this `address`, such as 127.0.0.1:8080", func(address string) error {
		g.status = address
		return status.Check(address)
	})
}

// verboseFlag defines -v, for verbs with a wait queue.
func (g *guard) verboseFlag(f *flag.FlagSet) {
	f.BoolVar(&g.verbose, "v", false, "after a second of waiting, show the holder and how many contenders are ahead; at a\nterminal zkrecipes does that without the flag")
}

// guardHelp follows a paragraph about $ZKRECIPES_TOKEN, which depends on how many
// clients hold PATH.
const guardHelp = `$ZKRECIPES_PATH is PATH, and $ZKRECIPES_ZNODE is the znode whose existence is the grant.

Before the grant, zkrecipes also waits for servers that do not answer, and replaces a
session that is lost, for -timeout at most. After the grant, a lost session is not
replaced. If the plugin is killed or crashes, the next one resumes the session.

When the hold is lost, the command gets TERM, and KILL after -grace. It has a process
group of its own, except in the foreground of a terminal. The whole group gets the
signals, and zkrecipes waits up to -grace for all processes that the command has started,
daemons too. It does not wait for a process that has closed the descriptors that it
inherited, as children of Python, Java and Node programs do.

zkrecipes passes signals on to the command. Before the command runs, a signal ends the
wait, and nothing is left behind. Under systemd set KillMode=mixed, so that the lock is
held until the command has ended.

SIGTSTP (Ctrl-Z) stops the command and then zkrecipes; after the session timeout the hold
is lost. SIGCONT for zkrecipes continues both, or ends the command after a loss. SIGSTOP
cannot be passed on: it stops zkrecipes only, and the command continues. If zkrecipes
is killed, the command is killed too, on Linux and Windows. Then PATH is held until all processes
that the command has started have ended, as with flock; a process that has closed its
descriptors does not count. If the hold is lost then, nothing ends these processes.
With -close, and on Windows, PATH is released at once.

With -warn-signal, the command is warned before the loss, if the servers are the reason.

A command that belongs to another user, such as one under sudo, gets no signals. zkrecipes
says so, and waits after a loss until it ends by itself; with -abandon it exits with 123.
Run zkrecipes itself as that user: sudo zkrecipes lock PATH -- command.

Exit code: the command's, or 128+n if signal n ended the command or the wait before it.
Otherwise:

    2    wrong usage or configuration; nothing was done
    123  the hold was lost, or another client asked for it, whatever the command returned
    124  not granted: another contender holds it, or the time limit passed while ZooKeeper answered
    125  zkrecipes failed, for example to reach ZooKeeper
    126  the command cannot be run
    127  the command was not found`

func (g *guard) Arguments(args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("PATH and a command are missing")
	case len(args) == 1 || args[1] != "--":
		return errors.New(`the command follows PATH and "--"; flags go before PATH`)
	case len(args) == 2:
		return errors.New(`no command follows "--"`)
	}
	if err := recipes.ValidatePath(args[0]); err != nil {
		return err
	}
	g.path, g.argv = args[0], args[2:]
	g.data = cmp.Or(g.data, verb.Me()+" "+filepath.Base(g.argv[0]))
	return nil
}

// Resultless is part of verb.Action: stdout belongs to the command.
func (g *guard) Resultless() bool { return g.argv != nil }

// begin finds the program, before the wait, and prepares what must be there when the plugin starts: the
// status, and without -close a Lifetime, with which the plugin outlives a zkrecipes that is killed until
// all processes of the command have ended. The caller calls end when the plugin has ended.
func (g *guard) begin(ctx context.Context, t *verb.Tool) (_ context.Context, end func(), err error) {
	g.t = t
	if g.program, err = lookUp(g.argv[0]); err != nil {
		return nil, nil, err
	}
	if g.status != "" {
		if g.served, err = status.Listen(g.status); err != nil {
			return nil, nil, exit.Usage("-status: %w", err)
		}
		t.Meters = g.served.Meters
		t.Event(verb.Event{Event: "status", URL: g.served.URL()}, "status at "+g.served.URL())
	}
	if !g.close {
		if g.life, err = job.NewLifetime(); err != nil {
			g.served.Close()
			return nil, nil, err
		}
		t.Life = g.life
	}
	g.relay, ctx = job.NewRelay(ctx)
	return ctx, func() {
		g.relay.Stop()
		g.life.Close()
		g.served.Close()
	}, nil
}

// run waits for the grant and runs the command under it.
func (g *guard) run(ctx context.Context, t *verb.Tool, acquire func(context.Context, recipes.Client) (grant, error)) error {
	ctx, end, err := g.begin(ctx, t)
	if err != nil {
		return err
	}
	defer end()
	p := verb.Patience{
		Timeout: g.timeout, Try: g.try, Failure: g.path + " was not granted",
		Hint: fmt.Sprintf("zkrecipes contenders %s shows the contenders ahead", g.path),
	}
	held, err := g.runOnce(ctx, p, acquire)
	for backoff := (verb.Backoff{}); held != nil && g.repeats(held); {
		g.try = false // -try is for the first grant
		if g.retry > 0 {
			p.Timeout, p.Try, p.Failure = g.retry, false, g.path+" was lost, and not granted again"
		}
		backoff.Next(held.ran)
		backoff.Pause(held.after)
		held, err = g.runOnce(held.after, p, acquire)
		if again := exit.Code(err, exit.Own); held == nil && g.retry > 0 && (again == exit.Timeout || again == exit.Own) {
			return exit.With(exit.Lost, "%w", err) // the first grant was lost
		}
	}
	return err
}

// runOnce waits for one grant and runs the command under it. held is nil if the command did not
// run.
func (g *guard) runOnce(ctx context.Context, p verb.Patience, acquire func(context.Context, recipes.Client) (grant, error)) (held *holding, err error) {
	acquireShown := func(ctx context.Context, s recipes.Client) (grant, error) {
		g.served.Opened(s)
		g.timeoutGranted = s.Timeout()
		stop := g.showWait(ctx, s)
		h, err := acquire(ctx, s)
		stop()
		if errors.Is(err, recipes.ErrContended) {
			err = g.heldBy(ctx, s)
		}
		return h, err
	}
	err = verb.Await(ctx, g.t, p, acquireShown, func(h grant) (err error) {
		defer g.served.Granted(g.path, h.Grant)()
		g.t.Event(verb.Event{Event: "acquired", Path: g.path, Token: int64(h.Token())}, "")
		held, err = g.hold(h)
		return err
	})
	return held, err
}

// repeats reports whether the command is to be started again, and shows that. It is not if a
// signal has ended the command. After a loss it is not if processes of the command still run
// at the end of -grace.
func (g *guard) repeats(h *holding) bool {
	text := fmt.Sprintf("waiting for %s again", g.path)
	switch {
	case h.ended, !g.again && (g.retry == 0 || !h.lost):
		return false
	case !h.lost:
		text = fmt.Sprintf("the command has ended with exit code %d, %s", h.code, text)
	case !h.gone(g.grace):
		g.t.Event(verb.Event{Event: "left", Path: g.path}, "the command is not started again: a process that it has started still runs")
		return false
	}
	g.t.Event(verb.Event{Event: "again", Path: g.path}, text)
	return true
}

// grantBy acquires through the entry of that name in the catalog of grants.
func (g *guard) grantBy(ctx context.Context, s recipes.Recipes, name string, o grants.Options) (grant, error) {
	w := grants.Named(name)
	o.Data = []byte(g.data)
	e, err := w.Open(s, g.path, o)
	if err != nil {
		return grant{}, err
	}
	got, err := choose(g.try, e.Try, e.Get)(ctx)
	if err != nil {
		return grant{}, err
	}
	return grant{Grant: got, giveBack: func(ctx context.Context) error { return w.GiveBack(ctx, got) }}, nil
}

// lookUp finds a program in PATH, as a shell does.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist):
		return "", exit.With(exit.Missing, "command %s: %w", name, err)
	case err != nil:
		return "", exit.With(exit.Cannot, "command %s: %w", name, err)
	}
	return path, nil
}
