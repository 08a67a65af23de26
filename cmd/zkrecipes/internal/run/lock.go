package run

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var lock = verb.Verb{
	Name: "lock", Usage: "[flags] PATH -- COMMAND [ARGUMENT...]", New: verb.New[lockVerb], Otherwise: exit.Own,
	Synopsis: "Run a command while holding a lock, or a permit",
	Help: `Waits for the lock at PATH, and runs the command while it holds the lock. Only one
command holding PATH runs at a time, and waiters are served first in, first out.

    zkrecipes lock -timeout 1h /backups/db1 -- ./backup.sh
    zkrecipes lock -n 4 -try /render -- ./render frame.svg

Programs with Curator's InterProcessMutex or LeaderSelector, or go-zookeeper's Lock, can
share a plain lock. For programs with kazoo, or with another lock or semaphore of
Curator, give -dialect. If zkrecipes finds such a contender without it, it gives up with
exit code 125 and names the contender. If one joins after the grant, both hold PATH for a
moment, and then the hold is lost. With -dialect curator and -n, the numbers of
permits are not compared.

PATH is one of four kinds of lock, and all contenders must use the same kind:

    no flag              a lock: one command at a time
    -n PERMITS           a semaphore: up to PERMITS commands at a time; all
                         contenders must give the same number, even if it is 1
    -shared, -exclusive  a shared lock: commands with -shared run together, one
                         with -exclusive runs alone; later contenders wait behind
                         a waiter with -exclusive
    -priority NUMBER     a priority lock: the waiter with the lowest number is
                         served first, equal numbers first in, first out; commands
                         with -shared run together, any other command alone

With -n, $ZKRECIPES_SLOT is the number of the command's permit, from 0 to PERMITS-1. A
command gets the lowest free number, and no two holders of PATH have the same number.
The dialects of other libraries have no numbers.

With -and, which can be repeated, the command runs while zkrecipes holds the plain locks
of all these paths. They are acquired in the order of their paths, whatever the order of
the flags is, so two commands do not wait for each other for ever. $ZKRECIPES_TOKENS has
the token of each path, as a JSON object. $ZKRECIPES_TOKEN and $ZKRECIPES_ZNODE are those
of the last path in that order. $ZKRECIPES_PATH is PATH. -v shows the wait queue of PATH.
-data is stored at every path.

    zkrecipes lock /accounts/1 -and /accounts/2 -- ./transfer

Each kind has a separate wait queue: a plain lock does NOT wait for -shared, but
-exclusive does. A contender that finds one of another kind, or of an election, gives up
with exit code 125 and names it. If two join at the same time, at least the later one
finds the other. Other programs do not check for ours.

In a priority lock the holder keeps the lock until it releases it. A waiter with -ask
asks holders with larger numbers to release it. Waiters with large numbers wait as long
as contenders with smaller numbers keep joining.

With -once-per, the command runs at most once in that time, wherever zkrecipes runs. If it
has run, zkrecipes says so and exits with code 0. The time counts from the start of the
last run that succeeded, by the clock of ZooKeeper's leader. For a job that runs every 24
hours, give 23h. A command that failed, was ended, or whose machine died does not count:
the next zkrecipes runs it. With -count-failures every start counts. If the leader's clock
was set back, zkrecipes says so, and the time starts again. The record is PATH/once:
delete it to run the command before its time.

    zkrecipes lock -once-per 23h /cron/backup -- ./backup.sh

With -max-hold, the command is ended as after a loss when it has held the lock that long,
and the lock is released: a job that hangs does not keep others out for ever. With
-min-hold, the lock is kept after a shorter run: a machine whose clock is late finds it
taken, and -try gives up. A signal ends that wait.

    zkrecipes lock -try -min-hold 30s -max-hold 30m /cron/report -- ./report.sh

With -try, zkrecipes waits for servers for -connect-timeout, and replaces lost sessions for
a minute. A machine that starts hundreds of commands at once needs more than 5s.

With -c, a shell runs the command: zkrecipes lock PATH -c 'make >log', as with flock.
After --, a pipeline or a redirection belongs to the shell that starts zkrecipes.

With -retry, zkrecipes waits for the lock again after a loss, and starts the command
again with a new token. Before that, all processes of the first command have ended. A
command is not started again if a signal has ended it, or if it was ended because another
client asked for the lock. -try and -timeout apply to the first grant only.

With -revocable, another client can ask for the lock, by zkrecipes revoke PATH or by
-ask. Then the command is ended as after a loss, and the lock is released. -revocable
needs -shared, -exclusive or -priority.

$ZKRECIPES_TOKEN is the fencing token. Send it with each write. If PATH has one holder at
a time, the receiver refuses a token smaller than the largest that it has seen. With -n,
compare the tokens of one $ZKRECIPES_SLOT only. If commands hold PATH with -shared,
compare only with tokens of commands without it.
` + guardHelp,
}

// slotEnv is the number of a semaphore's permit.
const slotEnv = "ZKRECIPES_SLOT"

// tokensEnv is the token of each path of several locks.
const tokensEnv = "ZKRECIPES_TOKENS"

// onlySlot is the hold of a semaphore with one permit, which always has the number 0.
type onlySlot struct{ recipes.Hold }

func (onlySlot) Slot() int { return 0 }

type lockVerb struct {
	guard
	// permits is 0 if PATH is not a semaphore. With one permit it is a semaphore too, because
	// semaphores of other libraries are not locks.
	permits           int
	shared, exclusive bool
	dialect           recipes.Dialect
	priority          verb.Priority
	ask               bool
	revocable         bool
	and               []string // the paths of more locks
	forceAfter        time.Duration
	oncePer           time.Duration
	countFailures     bool
	shell             string
	conflict          int // the exit code if the lock is not granted
}

func (v *lockVerb) Flags(f *flag.FlagSet) {
	v.guard.Flags(f)
	v.verboseFlag(f)
	v.statusFlag(f)
	verb.DialectFlag(f, &v.dialect)
	f.StringVar(&v.shell, "c", "", "run this `command` with sh, instead of a command after --")
	f.IntVar(&v.conflict, "conflict-exit-code", exit.Timeout, "exit with this `code` if the lock was not granted, like flock -E")
	verb.DurationVar(f, &v.retry, "retry", 0, "after a loss, wait up to this `duration` for another grant, and start the command again;\n0: do not")
	verb.DurationVar(f, &v.maxHold, "max-hold", 0, "end the command, as after a loss, when it has held the lock for this `duration`; 0: never")
	verb.DurationVar(f, &v.minHold, "min-hold", 0, "after a shorter run, keep the lock until it was held for this `duration`")
	f.BoolVar(&v.try, "try", false, helptext.Common("do not wait: exit with 124 if another client holds it"))
	f.Func("n", helptext.Common("PATH is a semaphore with this number of `permits`: up to that many commands run at a\ntime; without -n it is a plain lock"), v.setPermits)
	f.Func("and", "hold the lock at this `path` too; can be repeated, also after PATH", v.addPath)
	verb.DurationVar(f, &v.oncePer, "once-per", 0, "run the command at most once per `duration`, and exit with 0 if it has run; 0: always run it")
	f.BoolVar(&v.countFailures, "count-failures", false, "with -once-per: a command that fails counts too")
	f.BoolVar(&v.shared, "shared", false, "share PATH with other commands with -shared: read")
	f.BoolVar(&v.exclusive, "exclusive", false, "hold PATH alone, without commands with -shared: write")
	v.priority.Flag(f, "wait with this `number`, from 0, which is served first, to 99")
	f.BoolVar(&v.ask, "ask", false, "with -priority: while waiting, ask holders with a larger number to release it")
	f.BoolVar(&v.revocable, "revocable", false, "end the command when another client asks for the lock")
	verb.DurationVar(f, &v.forceAfter, "force-after", 0, "with -revocable: zkrecipes revoke -force may take the lock away this `duration`\nafter it was asked for; must be longer than -grace; 0: never")
}

func (v *lockVerb) addPath(path string) error {
	v.and = append(v.and, path)
	return recipes.ValidatePath(path)
}

func (v *lockVerb) setPermits(text string) (err error) {
	if v.permits, err = strconv.Atoi(text); err != nil || (recipes.SemaphoreConfig{Permits: v.permits}).Validate() != nil {
		return errors.New("the number of permits is from 1 to 2^31-1")
	}
	return nil
}

func (v *lockVerb) Arguments(args []string) error {
	for len(args) > 2 && args[1] == "-and" { // after PATH
		if err := v.addPath(args[2]); err != nil {
			return fmt.Errorf("-and: %w", err)
		}
		args = append(args[:1:1], args[3:]...)
	}
	if len(args) == 3 && args[1] == "-c" && v.shell == "" { // after PATH, as in flock
		v.shell, args = args[2], args[:1]
	}
	if v.shell != "" {
		if len(args) > 1 {
			return errors.New("with -c the flag is the command: give only PATH after the flags")
		}
		args = append(args[:len(args):len(args)], "--", "sh", "-c", v.shell)
	}
	switch {
	case v.conflict < 0 || v.conflict > 255:
		return fmt.Errorf("-conflict-exit-code %d: an exit code is from 0 to 255", v.conflict)
	case v.try && v.timeout > 0:
		return errors.New("-try does not wait: leave -timeout out")
	case v.shared && v.exclusive:
		return errors.New("-shared and -exclusive are the two sides of a shared lock: give one")
	case v.permits > 0 && (v.shared || v.exclusive):
		return errors.New("-n is for a semaphore, -shared and -exclusive are for a shared lock: PATH is one or the other")
	case v.permits > 0 && v.priority.Given:
		return errors.New("-n is for a semaphore, -priority is for a priority lock: PATH is one or the other")
	case len(v.and) > 0 && (v.permits > 0 || v.shared || v.exclusive || v.priority.Given):
		return errors.New("-and holds several plain locks: leave out -n, -shared, -exclusive and -priority")
	case len(v.and) > 0 && v.try:
		return errors.New("-and cannot be combined with -try: give a short -timeout")
	case v.oncePer > 0 && (v.permits > 0 || v.shared):
		return errors.New("-once-per needs a lock with one holder: leave out -n and -shared")
	case v.oncePer > 0 && verb.OtherLibrary(v.dialect):
		return errors.New("-once-per needs the default of -dialect: other libraries do not record their turns")
	case v.maxHold > 0 && v.minHold > v.maxHold:
		return fmt.Errorf("-min-hold %v is longer than -max-hold %v: no run could satisfy both", v.minHold, v.maxHold)
	case v.countFailures && v.oncePer == 0:
		return errors.New("-count-failures needs -once-per")
	case verb.OtherLibrary(v.dialect) && v.priority.Given:
		return errors.New("-priority needs the default of -dialect: other libraries have no lock with priorities")
	case verb.OtherLibrary(v.dialect) && v.revocable:
		return errors.New("-revocable needs the default of -dialect: other libraries cannot ask for a lock")
	case v.ask && !v.priority.Given:
		return errors.New("-ask needs -priority: only in a priority lock can a waiter be more urgent than a holder")
	case v.ask && v.try:
		return errors.New("-ask asks while it waits, and -try does not wait: leave one out")
	case v.revocable && !v.shared && !v.exclusive && !v.priority.Given:
		return errors.New("-revocable needs -shared, -exclusive or -priority")
	case v.forceAfter != 0 && !v.revocable:
		return errors.New("-force-after needs -revocable: a lock must be asked for before it can be taken away")
	case v.forceAfter != 0 && v.forceAfter <= v.grace:
		return fmt.Errorf("-force-after %v must be longer than -grace, which is %v: the command must have ended before the lock is taken away", v.forceAfter, v.grace)
	}
	// The configuration of a priority lock has the same fields.
	shared := recipes.SharedLockConfig{Dialect: v.dialect, Data: []byte(v.data), Revocable: v.revocable, Grace: v.forceAfter}
	if err := cmp.Or(shared.Validate(), v.guard.Arguments(args)); err != nil {
		return err
	}
	for i, path := range v.and {
		if path == v.path || slices.Contains(v.and[:i], path) {
			return fmt.Errorf("-and %s: name each path once", path)
		}
	}
	return nil
}

func (v *lockVerb) Run(ctx context.Context, t *verb.Tool) error {
	v.lineKind = grants.Named(v.way()).Kind
	err := v.guard.run(ctx, t, func(ctx context.Context, s recipes.Client) (grant, error) {
		h, err := v.acquire(ctx, s)
		if err != nil {
			return grant{}, v.explain(err)
		}
		if v.oncePer > 0 {
			err = v.claimTurn(ctx, s, &h)
		}
		return h, err
	})
	if failed, _ := errors.AsType[exit.Error](err); failed.Code == exit.Timeout && failed.Err != nil { // not the command's own 124
		return exit.With(v.conflict, "%w", failed.Err)
	}
	return err
}

// claimTurn takes a turn of the period. If none is due, it releases the lock.
func (v *lockVerb) claimTurn(ctx context.Context, s recipes.Recipes, h *grant) error {
	record, err := s.Configuration(v.path)
	if err != nil {
		return err
	}
	turn, err := recipes.OncePer(ctx, h, record, v.oncePer)
	if err == nil && v.countFailures {
		err = turn.Count(ctx)
	} else if err == nil {
		h.count = turn.Count
	}
	if err == nil {
		return nil
	}
	v.release(*h)
	if early, ok := errors.AsType[*recipes.NotDueError](err); ok {
		v.t.Event(verb.Event{Event: "not-due", Path: v.path, Cause: early.Error()}, v.path+": "+early.Error())
		return exit.Silently(exit.OK)
	}
	return err
}

// explain adds advice to an error about the other contenders of PATH.
func (v *lockVerb) explain(err error) error {
	switch {
	case !errors.Is(err, recipes.ErrMismatch):
		return verb.Foreign(err)
	case v.priority.Given:
		return fmt.Errorf("%w; give a PATH that holds no data", err)
	}
	return fmt.Errorf("%w; zkrecipes semaphore %s shows the number; give the same -n, or change it when there are no contenders", err, v.path)
}

func (v *lockVerb) acquire(ctx context.Context, s recipes.Recipes) (grant, error) {
	if len(v.and) > 0 {
		return v.acquireAll(ctx, s)
	}
	g, err := v.grantBy(ctx, s, v.way(), grants.Options{
		Permits: v.permits, Priority: v.priority.Number, Ask: v.ask, Dialect: v.dialect, Revocable: v.revocable, Grace: v.forceAfter,
	})
	if err != nil {
		return grant{}, err
	}
	if r, ok := g.Grant.(interface{ Revoked() <-chan struct{} }); ok && v.revocable {
		g.asked = r.Revoked()
	}
	if h, ok := g.Grant.(recipes.Hold); ok && v.permits == 1 && !verb.OtherLibrary(v.dialect) {
		g.Grant = onlySlot{h} // no number is claimed, so that a release is a handoff
	}
	return g, nil
}

// way names the entry of this lock in the catalog of grants.
func (v *lockVerb) way() string {
	switch {
	case v.priority.Given:
		return choose(v.shared, "priority lock for reading", "priority lock for writing")
	case v.shared || v.exclusive:
		return choose(v.shared, "shared lock for reading", "shared lock for writing")
	case v.permits > 1 && !verb.OtherLibrary(v.dialect):
		return "slots"
	case v.permits > 0:
		return "semaphore"
	}
	return "lock"
}

func (v *lockVerb) acquireAll(ctx context.Context, s recipes.Recipes) (grant, error) {
	var locks []recipes.Lock
	for _, path := range append([]string{v.path}, v.and...) {
		l, err := s.Lock(path, recipes.LockConfig{Dialect: v.dialect, Data: []byte(v.data)})
		if err != nil {
			return grant{}, err
		}
		locks = append(locks, l)
	}
	holds, err := recipes.AcquireAll(ctx, locks...)
	if err != nil {
		return grant{}, err
	}
	return grant{Grant: holds, giveBack: holds.Release}, nil
}

func choose[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}
