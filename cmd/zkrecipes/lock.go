package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// lockVerb runs a command under a lock, a permit of a semaphore, or either side
// of a shared lock or a priority lock.
type lockVerb struct {
	guard
	try               bool
	permits           int
	shared, exclusive bool
	priority          priority
	ask               bool
	revocable         bool
	forceAfter        time.Duration
}

func (v *lockVerb) describe() (arguments, synopsis, help string) {
	return "lock [flags] PATH -- COMMAND [ARGUMENT...]", "Run a command while holding a lock, or a permit", `
Waits for the lock at PATH, runs the command while it is held, and gives it back
when the command has ended. Of all who lock PATH, in any program that follows
ZooKeeper's lock recipe, one runs at a time, in the order in which they came.

With -n, up to so many run at a time: PATH is a semaphore. All have to give the
same number. -n 1 is the lock.

With -shared and -exclusive, PATH is a lock of readers and writers: those with
-shared run together, one with -exclusive runs alone. One who waits with
-exclusive goes before all who come later.

With -priority, PATH is a priority lock: of those who wait, lower numbers go first,
whenever they came, and equal ones in order. One runs at a time, or with -shared
readers together. Who holds keeps it; with -ask, one who waits asks those who hold
with a larger number to give way. Larger numbers wait for as long as smaller ones
keep coming.

What PATH is has to be agreed on: a lock, a semaphore, a shared lock or a priority
lock. In ZooKeeper they are lines of their own, which do not see each other: a
plain lock does NOT exclude -shared, -exclusive does. So before the command runs,
zkrecipes looks at the others at PATH, and if PATH is something else to any of
them, it gives up with exit code 125. (Of two zkrecipes who come at the same time,
at least the later sees the other. Another program may not look.)

With -revocable, which -shared, -exclusive and -priority have, zkrecipes revoke
PATH can ask for the lock: the command is then ended, as if the hold were lost,
and the lock given back.

` + guardHelp
}

func (v *lockVerb) flags(f *flag.FlagSet) {
	v.guard.flags(f)
	f.BoolVar(&v.try, "try", false, "do not wait for others: exit with 124 if somebody holds it")
	f.IntVar(&v.permits, "n", 1, "let `permits` commands run at a time")
	f.BoolVar(&v.shared, "shared", false, "share PATH with others who share it: read")
	f.BoolVar(&v.exclusive, "exclusive", false, "have PATH alone, also of those who share it: write")
	f.Var(&v.priority, "priority", "wait with this `priority`, from 0, the first, to 99")
	f.BoolVar(&v.ask, "ask", false, "with -priority: while waiting, ask those who hold with a larger number, and with\n-revocable, to give way")
	f.BoolVar(&v.revocable, "revocable", false, "end the command when somebody asks for the lock with zkrecipes revoke")
	durationVar(f, &v.forceAfter, "force-after", 0, "with -revocable: let zkrecipes revoke -force take the lock away this `duration` after\nit was asked for; longer than -grace; 0 lets nobody")
}

func (v *lockVerb) arguments(args []string) error {
	switch {
	case v.try && v.timeout > 0:
		return errors.New("-try does not wait, so that it takes no -timeout")
	case v.semaphoreConfig().Validate() != nil:
		return fmt.Errorf("-n %d: the number of permits is from 1 to 2^31-1", v.permits)
	case v.shared && v.exclusive:
		return errors.New("-shared and -exclusive are the two sides of a shared lock: give one")
	case v.permits > 1 && (v.shared || v.exclusive):
		return errors.New("-n is for a semaphore, -shared and -exclusive are for a shared lock: PATH is one or the other")
	case v.permits > 1 && v.priority.given:
		return errors.New("-n is for a semaphore, -priority is for a priority lock: PATH is one or the other")
	case v.ask && !v.priority.given:
		return errors.New("-ask needs -priority: nobody else goes before those who hold")
	case v.ask && v.try:
		return errors.New("-try does not wait, so that there is nobody to -ask")
	case v.revocable && !v.shared && !v.exclusive && !v.priority.given:
		return errors.New("-revocable is for shared locks and priority locks: give -shared, -exclusive or -priority too")
	case v.forceAfter != 0 && !v.revocable:
		return errors.New("-force-after needs -revocable: nobody is forced who was not asked")
	case v.forceAfter != 0 && v.forceAfter <= v.grace:
		return fmt.Errorf("-force-after %v must be longer than -grace, which is %v: the command has to have ended before the lock is taken away", v.forceAfter, v.grace)
	}
	if err := v.sharedConfig().Validate(); err != nil { // and so is priorityConfig
		return err
	}
	return v.guard.arguments(args)
}

func (v *lockVerb) run(ctx context.Context, t *tool, out *output) error {
	return v.guard.run(ctx, t, out, func(ctx context.Context, s recipes.Session) (grant, error) {
		if err := v.disagree(ctx, s); err != nil { // rather than wait for nothing
			return grant{}, err
		}
		h, err := v.acquire(ctx, s)
		if err != nil {
			return grant{}, v.explain(err)
		}
		if err := v.disagree(ctx, s); err != nil {
			v.giveUp(h)
			return grant{}, err
		}
		return h, nil
	})
}

// explain says what to do about what another contender has said before.
func (v *lockVerb) explain(err error) error {
	switch {
	case !errors.Is(err, recipes.ErrMismatch):
		return err
	case v.priority.given:
		return fmt.Errorf("%w; give a PATH that holds no data", err)
	}
	return fmt.Errorf("%w; zkrecipes semaphore %s shows the number of permits there", err, v.path)
}

func (v *lockVerb) giveUp(h grant) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = h.giveBack(ctx) // the end of the session does it otherwise
}
