package run

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var lock = verb.Verb{
	Name: "lock", Usage: "[flags] PATH -- COMMAND [ARGUMENT...]", New: verb.New[lockVerb], Otherwise: exit.Own,
	Synopsis: "Run a command while holding a lock, or a permit",
	Help: `Waits for the lock at PATH, and runs the command while it holds the lock. Only one
command holding PATH runs at a time, in the order in which they came.

    zkrecipes lock -timeout 1h /backups/db1 -- ./backup.sh
    zkrecipes lock -n 4 -try /render -- ./render frame.svg

Programs with Curator's InterProcessMutex or LeaderSelector, or go-zookeeper's Lock, can
share a plain lock. For those with kazoo, or with another lock or semaphore of Curator,
give -dialect. If zkrecipes meets one of them without it, it gives up with exit code 125
and names it. It cannot see one that comes after it was granted. With -dialect curator
and -n, nothing compares the numbers of permits.

PATH is one of four kinds of lock, and all contenders must use the same kind:

    no flag              a lock: one command at a time
    -n PERMITS           a semaphore: up to PERMITS commands at a time; all
                         contenders must give the same number, also if it is 1
    -shared, -exclusive  a shared lock: commands with -shared run together, one
                         with -exclusive runs alone; a waiter with -exclusive goes
                         before all who come later
    -priority NUMBER     a priority lock: of the waiters the lowest number goes
                         first, and equal numbers in order; commands with -shared
                         run together, any other alone

With -n, $ZKRECIPES_SLOT is the number of the command's permit, from 0 to PERMITS-1. A
command gets the lowest free number, and no two holders of PATH have the same. The
dialects of other libraries, and older plugins, have no numbers.

Each kind has a wait queue of its own: a plain lock does NOT wait for -shared, but
-exclusive does. A contender that meets one of another kind, or of an election, gives up
with exit code 125 and names it. Of two that come at the same time, at least the later
one sees the other. Other programs do not look for it.

In a priority lock the holder keeps the lock until it has done. A waiter with -ask asks
holders with larger numbers to give way. Large numbers wait for as long as smaller
ones keep coming.

With -c, a shell runs the command: zkrecipes lock PATH -c 'make >log', as with flock. A
pipeline or a redirection after -- would be that of the shell that starts zkrecipes.

With -retry, zkrecipes waits for the lock again when it was lost, and starts the command
again, with a new token. The command of the lost lock has ended before that, with all
that it has started. A command that a signal has ended is not started again, nor is
one that was ended because another client asked for the lock. -try and -timeout are for the
first grant.

With -revocable, others may ask for the lock: with zkrecipes revoke PATH, or with
-ask. The command is then ended as if the hold were lost, and the lock given back.
-revocable needs -shared, -exclusive or -priority.

` + guardHelp,
}

// slotEnv is the number of a semaphore's permit.
const slotEnv = "ZKRECIPES_SLOT"

// onlySlot is the only permit of a semaphore. Its number is known.
type onlySlot struct{ recipes.Hold }

func (onlySlot) Slot() int { return 0 }

type lockVerb struct {
	guard
	permits           permitCount
	shared, exclusive bool
	dialect           verb.Dialect
	priority          verb.Priority
	ask               bool
	revocable         bool
	forceAfter        time.Duration
	shell             string
	conflict          int // the exit code if it is not granted
}

func (v *lockVerb) Flags(f *flag.FlagSet) {
	v.guard.Flags(f)
	v.verboseFlag(f)
	v.dialect.Flag(f)
	f.StringVar(&v.shell, "c", "", "run this `command` with sh, instead of one after --")
	f.IntVar(&v.conflict, "conflict-exit-code", exit.Timeout, "exit with this `code` if the lock was not granted, as flock -E")
	verb.DurationVar(f, &v.retry, "retry", 0, "after a loss, wait for this `duration` for another grant, and start the command again;\n0: do not")
	f.BoolVar(&v.try, "try", false, "do not wait: exit with 124 if another client holds it")
	f.Var(&v.permits, "n", "let `permits` commands run at a time, as a semaphore; without it PATH is a plain lock")
	f.BoolVar(&v.shared, "shared", false, "share PATH with other commands that share it: read")
	f.BoolVar(&v.exclusive, "exclusive", false, "have PATH alone, without those that share it: write")
	f.Var(&v.priority, "priority", "wait with this `number`, from 0, which goes first, to 99")
	f.BoolVar(&v.ask, "ask", false, "with -priority: while waiting, ask holders with a larger number to give way")
	f.BoolVar(&v.revocable, "revocable", false, "end the command when another client asks for the lock")
	verb.DurationVar(f, &v.forceAfter, "force-after", 0, "with -revocable: zkrecipes revoke -force may take the lock away this `duration`\nafter it was asked for; longer than -grace; 0: never")
}

func (v *lockVerb) Arguments(args []string) error {
	if len(args) == 3 && args[1] == "-c" && v.shell == "" { // where flock has it
		v.shell, args = args[2], args[:1]
	}
	if v.shell != "" {
		if len(args) > 1 {
			return errors.New("with -c the command is the flag's, and only PATH follows")
		}
		args = append(args[:len(args):len(args)], "--", "sh", "-c", v.shell)
	}
	switch {
	case v.conflict < 0 || v.conflict > 255:
		return fmt.Errorf("-conflict-exit-code %d: an exit code is from 0 to 255", v.conflict)
	case v.retry < 0:
		return errors.New("-retry must not be negative")
	case v.try && v.timeout > 0:
		return errors.New("-try does not wait: leave -timeout out")
	case v.shared && v.exclusive:
		return errors.New("-shared and -exclusive are the two sides of a shared lock: give one")
	case v.permits.given() && (v.shared || v.exclusive):
		return errors.New("-n is for a semaphore, -shared and -exclusive are for a shared lock: PATH is one or the other")
	case v.permits.given() && v.priority.Given:
		return errors.New("-n is for a semaphore, -priority is for a priority lock: PATH is one or the other")
	case v.dialect.Other() && v.priority.Given:
		return errors.New("-priority needs the default of -dialect: other libraries have no lock with priorities")
	case v.dialect.Other() && v.revocable:
		return errors.New("-revocable needs the default of -dialect: other libraries do not ask for a lock")
	case v.ask && !v.priority.Given:
		return errors.New("-ask needs -priority: only there does a waiter go before a holder")
	case v.ask && v.try:
		return errors.New("-ask asks while it waits, and -try does not wait: leave one out")
	case v.revocable && !v.shared && !v.exclusive && !v.priority.Given:
		return errors.New("-revocable needs -shared, -exclusive or -priority")
	case v.forceAfter != 0 && !v.revocable:
		return errors.New("-force-after needs -revocable: only what can be asked for can be forced")
	case v.forceAfter != 0 && v.forceAfter <= v.grace:
		return fmt.Errorf("-force-after %v must be longer than -grace, which is %v: the command has to have ended before the lock is taken away", v.forceAfter, v.grace)
	}
	return cmp.Or(v.sharedConfig().Validate(), v.guard.Arguments(args)) // a priority lock's config is valid then too
}

func (v *lockVerb) Run(ctx context.Context, t *verb.Tool) error {
	v.kindOfLine = v.kind()
	err := v.guard.run(ctx, t, func(ctx context.Context, s recipes.Client) (grant, error) {
		h, err := v.acquire(ctx, s)
		if err != nil {
			return grant{}, v.explain(err)
		}
		return h, nil
	})
	if failed, _ := errors.AsType[exit.Error](err); failed.Code == exit.Timeout && failed.Err != nil { // and no command's own 124
		return exit.With(v.conflict, "%w", failed.Err)
	}
	return err
}

// kind is what PATH is to this contender.
func (v *lockVerb) kind() recipes.Kind {
	switch {
	case v.priority.Given:
		return recipes.KindPriorityLock
	case v.permits.given():
		return recipes.KindSemaphore
	case v.sharing():
		return recipes.KindSharedLock
	}
	return recipes.KindLock
}

// explain says what to do about what another contender has said before.
func (v *lockVerb) explain(err error) error {
	switch {
	case !errors.Is(err, recipes.ErrMismatch):
		return verb.Foreign(err)
	case v.priority.Given:
		return fmt.Errorf("%w; give a PATH that holds no data", err)
	}
	return fmt.Errorf("%w; zkrecipes semaphore %s shows the number; give the same -n, or another one when no contender is in line", err, v.path)
}

// sharing: PATH is a shared lock. A priority lock has readers and writers too.
func (v *lockVerb) sharing() bool { return (v.shared || v.exclusive) && !v.priority.Given }

func (v *lockVerb) sharedConfig() recipes.SharedLockConfig {
	return recipes.SharedLockConfig{Dialect: recipes.Dialect(v.dialect), Data: []byte(v.data), Revocable: v.revocable, Grace: v.forceAfter}
}

func (v *lockVerb) acquire(ctx context.Context, s recipes.Recipes) (grant, error) {
	switch {
	case v.priority.Given:
		l, err := s.PriorityLock(v.path, recipes.PriorityLockConfig{
			Priority: v.priority.Number, Ask: v.ask, Data: []byte(v.data), Revocable: v.revocable, Grace: v.forceAfter,
		})
		read := choose(v.try, recipes.PriorityLock.TryRead, recipes.PriorityLock.AcquireRead)
		write := choose(v.try, recipes.PriorityLock.TryWrite, recipes.PriorityLock.AcquireWrite)
		return take(ctx, v, l, err, choose(v.shared, read, write))
	case v.sharing():
		l, err := s.SharedLock(v.path, v.sharedConfig())
		read := choose(v.try, recipes.SharedLock.TryRead, recipes.SharedLock.AcquireRead)
		write := choose(v.try, recipes.SharedLock.TryWrite, recipes.SharedLock.AcquireWrite)
		return take(ctx, v, l, err, choose(v.exclusive, write, read))
	case v.permits > 1 && !v.dialect.Other():
		l, err := s.Slots(v.path, recipes.SemaphoreConfig{Permits: int(v.permits), Data: []byte(v.data)})
		g, err := take(ctx, v, l, err, choose(v.try, recipes.Slots.TryAcquire, recipes.Slots.Acquire))
		if !errors.Is(err, recipes.ErrUnsupported) {
			return g, err
		}
		fallthrough // the plugin is older, and gives permits without numbers
	case v.permits.given():
		l, err := s.Semaphore(v.path, recipes.SemaphoreConfig{Permits: int(v.permits), Dialect: recipes.Dialect(v.dialect), Data: []byte(v.data)})
		g, err := take(ctx, v, l, err, choose(v.try, recipes.Semaphore.TryAcquire, recipes.Semaphore.Acquire))
		if h, ok := g.Grant.(recipes.Hold); ok && v.permits == 1 && !v.dialect.Other() {
			g.Grant = onlySlot{h} // without a claim, so that one releases to the next by handoff
		}
		return g, err
	}
	l, err := s.Lock(v.path, recipes.LockConfig{Dialect: recipes.Dialect(v.dialect), Data: []byte(v.data)})
	return take(ctx, v, l, err, choose(v.try, recipes.Lock.TryAcquire, recipes.Lock.Acquire))
}

// take acquires a lock, unless it could not be opened.
func take[L any, H recipes.Hold](ctx context.Context, v *lockVerb, l L, err error, acquire func(L, context.Context) (H, error)) (grant, error) {
	if err != nil {
		return grant{}, err
	}
	h, err := acquire(l, ctx)
	if err != nil {
		return grant{}, err
	}
	g := grant{Grant: h, giveBack: h.Release}
	if r, ok := recipes.Hold(h).(interface{ Revoked() <-chan struct{} }); ok && v.revocable {
		g.asked = r.Revoked()
	}
	return g, nil
}

func choose[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// permitCount is the number of permits of a semaphore, or 0 if PATH is not a semaphore. One
// permit is a semaphore, too: semaphores of other libraries are not locks. It is a flag.Value.
type permitCount int

func (p *permitCount) String() string { return "" }

func (p *permitCount) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || (recipes.SemaphoreConfig{Permits: n}).Validate() != nil {
		return errors.New("the number of permits is from 1 to 2^31-1")
	}
	*p = permitCount(n)
	return nil
}

func (p permitCount) given() bool { return p > 0 }
