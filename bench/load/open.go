package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// maxWaiting limits the acquisitions of an open load that wait at once. Without a limit, an
// overloaded line and this process's memory would grow without end.
const maxWaiting = 10_000

// ErrOverloaded is returned if the acquisitions of an open load arrive so much faster than
// they are granted that 10,000 wait at once, or that none is granted in time.
var ErrOverloaded = errors.New("acquisitions come faster than they are granted")

// open is a running open load. Session i handles arrivals i, i+N, i+2N, ..., so a session
// may have several contenders in line.
type open struct {
	Load
	contenders  []contender
	guard       guard
	sharedGuard *sharedGuard // replaces guard if several contenders can hold at once
	turns       atomic.Int64
	waiting     atomic.Int64
}

// openLoop runs an open load. Its warm-up is a schedule of its own. All sessions come to
// rest after it, so that the counters cover whole acquisitions. The warm-up waits for its
// grants at least as long as the measured part does: the first acquisition of a cold server
// may take longer than a short warm-up.
func (l Load) openLoop(ctx context.Context) (Measurement, error) {
	contenders, err := l.contenders(func(int64) {})
	if err != nil {
		return Measurement{}, err
	}
	o := &open{Load: l, contenders: contenders, guard: guard{sessions: l.Sessions}}
	warmup := max(l.Warmup, time.Millisecond)
	if _, err := o.arrivals(ctx, warmup, max(warmup, l.Duration), l.Seed+1); err != nil {
		return Measurement{}, fmt.Errorf("warm up: %w", err)
	}
	var m Measurement
	counters, err := l.counted(ctx, func(ctx context.Context) (err error) {
		m, err = o.arrivals(ctx, l.Duration, l.Duration, l.Seed)
		if err == nil && m.Operations == 0 {
			err = fmt.Errorf("no acquisition arrives within %v at %v a second; use a longer duration", l.Duration, l.Rate)
		}
		return err
	})
	if err != nil {
		return Measurement{}, err
	}
	m.Counters = counters
	m.Warm = Warm{Took: l.Warmup}
	return m, o.guard.check(o.turns.Load())
}

// arrivals starts the acquisitions that are scheduled within duration. It waits for their
// grants for at most patience after that, and cancels those that still wait.
func (o *open) arrivals(ctx context.Context, duration, patience time.Duration, seed uint64) (Measurement, error) {
	rec := newRecorder()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	group, gctx := errgroup.WithContext(ctx)
	start, next := time.Now(), newPacer(o.Arrivals, o.Rate, seed)
	var err error
	n := 0
	for at := next(); at < duration; at = next() {
		intended := start.Add(at)
		if err = context.Cause(gctx); err == nil {
			err = pause(gctx, time.Until(intended))
		}
		if err != nil {
			break
		}
		if err = o.start(gctx, group, o.contenders[n%len(o.contenders)], start, intended, o.Hold, rec); err != nil {
			stop(err)
			break
		}
		n++
	}
	given := time.AfterFunc(time.Until(start.Add(duration+patience)), func() { stop(errGaveUp) })
	defer given.Stop()
	// If an acquisition has failed during the schedule, err is already its error.
	if waited := group.Wait(); err == nil {
		err = waited
	}
	if err != nil {
		return Measurement{}, err
	}
	if rec.m.Operations == 0 && n > 0 {
		return Measurement{}, fmt.Errorf("%w: none of %d within %v", ErrOverloaded, n, duration+patience)
	}
	rec.m.Elapsed = max(duration, rec.m.Elapsed)
	return rec.m, nil
}

// errGaveUp is the cause with which an open load cancels the acquisitions that still wait.
var errGaveUp = errors.New("the open load is over")

// start starts an acquisition in the group. It returns ErrOverloaded if too many wait.
func (o *open) start(ctx context.Context, group *errgroup.Group, c contender, start, intended time.Time, hold time.Duration, rec *recorder) error {
	if o.waiting.Add(1) > maxWaiting {
		return fmt.Errorf("%w: more than %d wait at once; lower the rate", ErrOverloaded, maxWaiting)
	}
	group.Go(func() error {
		defer o.waiting.Add(-1)
		return o.acquire(ctx, c, start, intended, hold, rec)
	})
	return nil
}

func (o *open) acquire(ctx context.Context, c contender, start, intended time.Time, hold time.Duration, rec *recorder) error {
	rec.record(rec.m.Late, max(0, time.Since(intended)))
	g, err := c.acquire(ctx)
	granted := time.Now()
	rec.record(rec.m.Wait, granted.Sub(intended))
	if err != nil {
		if errors.Is(context.Cause(ctx), errGaveUp) {
			rec.count(func(m *Measurement) { m.Unfinished++ })
			return nil
		}
		return err
	}
	if err := o.entered(c, g.token); err != nil {
		return err
	}
	if o.Shared {
		rec.count(func(m *Measurement) { m.Grants = append(m.Grants, Grant{Token: g.token}) })
	}
	held := pause(ctx, hold)
	o.leaving(c)
	// A grant is released even if the load has ended.
	if err := g.release(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	if held != nil && !errors.Is(context.Cause(ctx), errGaveUp) {
		return held
	}
	rec.record(rec.m.Service, time.Since(granted))
	rec.count(func(m *Measurement) {
		m.Operations++
		m.Elapsed = max(m.Elapsed, granted.Sub(start))
	})
	return nil
}

func (o *open) entered(c contender, token recipes.Token) error {
	if o.sharedGuard != nil {
		return o.sharedGuard.enter(c.reads)
	}
	return o.guard.enter(c.id, token)
}

func (o *open) leaving(c contender) {
	if o.sharedGuard != nil {
		o.sharedGuard.leave(c.reads)
		return
	}
	o.turns.Add(1)
	o.guard.leave()
}

// pacer returns the intended starts of an open load, one for each call, counted from its beginning.
// It does not sleep.
type pacer func() time.Duration

func newPacer(arrivals Arrivals, rate float64, seed uint64) pacer {
	gap := float64(time.Second) / rate
	if arrivals == Poisson {
		random, at := rand.New(rand.NewPCG(seed, 1)), 0.0
		return func() time.Duration {
			at += gap * random.ExpFloat64()
			return time.Duration(at)
		}
	}
	n := 0
	return func() time.Duration {
		n++
		return time.Duration(gap * float64(n-1))
	}
}

// Acquisition is one acquisition of a replay.
type Acquisition struct {
	At      time.Duration // from the start of the replay
	Hold    time.Duration // how long the grant is kept
	Session int           // the index in Load.Sessions

	Reads    bool // as a reader, of a shared or priority lock
	Priority int  // of a priority lock
}

// Replay requests the acquisitions at their times, whether or not earlier ones have been granted.
// They must be in the order of At. It needs only Path, Recipe, Strategy and Sessions of the load.
// Recipe can also be "semaphore", with Permits, "shared-lock" or "priority-lock". For a lock and an
// election it checks each grant as Run does. For the others it checks which contenders hold at the
// same time. Replays of several paths with the same start play at the same time, and may share
// sessions.
//
// A wait counts from the scheduled time. After the last acquisition Replay waits for grants for
// patience, and cancels those that still wait: Measurement.Unfinished counts them. The measurement
// has no Counters. When Replay returns, no contender waits and none holds, unless there is an error.
func (l Load) Replay(ctx context.Context, start time.Time, all []Acquisition, patience time.Duration) (Measurement, error) {
	o := &open{Load: l, guard: guard{sessions: l.Sessions}}
	if l.Recipe.Validate() != nil {
		o.sharedGuard = &sharedGuard{sessions: l.Sessions, permits: max(l.Permits, 1)}
	}
	var err error
	rec, last := newRecorder(), start
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	group, gctx := errgroup.WithContext(ctx)
	for _, a := range all {
		last = start.Add(a.At)
		if err = pause(gctx, time.Until(last)); err != nil {
			break
		}
		c := contender{id: int64(a.Session) + 1, reads: a.Reads}
		if c.acquire, err = l.replayFunc(l.Sessions[a.Session], a); err == nil {
			err = o.start(gctx, group, c, start, last, a.Hold, rec)
		}
		if err != nil {
			stop(err)
			break
		}
	}
	given := time.AfterFunc(time.Until(last.Add(patience)), func() { stop(errGaveUp) })
	defer given.Stop()
	if waited := group.Wait(); err == nil || errors.Is(waited, ErrBroken) {
		err = waited
	}
	if err != nil {
		return Measurement{}, fmt.Errorf("replay %s: %w", l.Path, err)
	}
	if o.sharedGuard != nil {
		return rec.m, nil
	}
	return rec.m, o.guard.check(o.turns.Load())
}

func (l Load) replayFunc(s recipes.Recipes, a Acquisition) (func(context.Context) (grant, error), error) {
	mode := "writing"
	if a.Reads {
		mode = "reading"
	}
	name := string(l.Recipe)
	switch recipes.Kind(l.Recipe) {
	case recipes.KindSemaphore:
	case recipes.KindSharedLock:
		name = "shared lock for " + mode
	case recipes.KindPriorityLock:
		name = "priority lock for " + mode
	default:
		return l.acquireFunc(s, nil)
	}
	return l.acquireBy(name, s, grants.Options{Permits: l.Permits, Priority: a.Priority, Strategy: l.Strategy})
}

// sharedGuard checks a line that several contenders can hold: one for each permit, or readers
// without a writer.
type sharedGuard struct {
	sessions []recipes.Client
	permits  int

	mu              sync.Mutex
	readers, others int
}

// enter must be the first call after a grant.
func (g *sharedGuard) enter(reads bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(reads, 1)
	if g.others > g.permits || g.others > 0 && g.readers > 0 {
		return violated(&Violation{"mutual exclusion", fmt.Sprintf("%d readers and %d others held; at most %d others, or readers", g.readers, g.others, g.permits)},
			g.sessions...)
	}
	return nil
}

// leave must be the last call before the holder leaves.
func (g *sharedGuard) leave(reads bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(reads, -1)
}

func (g *sharedGuard) count(reads bool, n int) {
	if reads {
		g.readers += n
	} else {
		g.others += n
	}
}
