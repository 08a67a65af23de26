package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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

// replayFunc is acquireFunc for the recipes of a replay.
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
