package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

type failover struct {
	Load
	started time.Time
	rest    *rest
	guard   guard
	grants  chan failoverGrant // the first holder, the next, and more if the lock is broken
	victim  atomic.Pointer[recipes.Client]
}

type failoverGrant struct {
	contender contender
	held      grant
	at        time.Time
	reported  bool // the killed session had reported its loss by then
}

func (l Load) failover(ctx context.Context) (Measurement, error) {
	if l.Kill == nil {
		return Measurement{}, errors.New("failover: Load.Kill is nil")
	}
	f := &failover{Load: l, started: time.Now(), rest: newRest(), guard: guard{sessions: l.Sessions}, grants: make(chan failoverGrant, len(l.Sessions))}
	contenders, err := l.contenders(func(int64) { f.rest.add(1) })
	if err != nil {
		return Measurement{}, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	group, running := errgroup.WithContext(running)
	for _, c := range contenders {
		group.Go(func() error { return f.contend(running, c) })
	}
	var m Measurement
	group.Go(func() (err error) {
		defer stop()
		m, err = f.measure(running)
		return err
	})
	if err := group.Wait(); err != nil {
		return Measurement{}, err
	}
	return m, nil
}

func (f *failover) contend(ctx context.Context, c contender) error {
	held, err := c.acquire(ctx)
	at := time.Now()
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("contender %d: %w", c.id, err)
	}
	f.grants <- failoverGrant{c, held, at, f.reported()}
	return nil
}

// reported returns whether the killed session reports its loss. It calls Err, which compares
// the time with the deadline: on a busy machine, the timer that closes Done may run late.
func (f *failover) reported() bool {
	victim := f.victim.Load()
	return victim != nil && (*victim).Err() != nil
}

func (f *failover) measure(ctx context.Context) (Measurement, error) {
	holder, err := f.next(ctx)
	if err != nil {
		return Measurement{}, err
	}
	if err := f.rest.await(ctx, int64(len(f.Sessions))); err != nil {
		return Measurement{}, err
	}
	survivors := slices.Concat(f.Sessions[:holder.contender.id-1], f.Sessions[holder.contender.id:])
	before, err := settled(ctx, survivors)
	if err != nil {
		return Measurement{}, err
	}
	if err := f.Begin(ctx); err != nil {
		return Measurement{}, err
	}
	f.guard.leave()
	f.victim.Store(&f.Sessions[holder.contender.id-1])
	killed := time.Now()
	if err := f.lost(holder); err != nil {
		return Measurement{}, err
	}
	if err := f.Kill(ctx, int(holder.contender.id)-1); err != nil {
		return Measurement{}, fmt.Errorf("kill the session of contender %d: %w", holder.contender.id, err)
	}
	successor, err := f.next(ctx)
	if err != nil {
		return Measurement{}, err
	}
	if successor.at.Before(killed) {
		return Measurement{}, &Violation{"mutual exclusion", fmt.Sprintf(
			"contender %d was granted while contender %d held", successor.contender.id, holder.contender.id)}
	}
	if !successor.reported {
		return Measurement{}, &Violation{"loss before the next grant", fmt.Sprintf(
			"contender %d was granted while contender %d, which was cut off %v before, had not yet reported its loss",
			successor.contender.id, holder.contender.id, successor.at.Sub(killed).Round(time.Millisecond))}
	}
	if err := pause(ctx, f.Aftermath); err != nil {
		return Measurement{}, err
	}
	select {
	case another := <-f.grants:
		return Measurement{}, f.guard.enter(another.contender.id, another.held.token)
	default:
	}
	after, err := total(ctx, survivors)
	if err != nil {
		return Measurement{}, err
	}
	rec := newRecorder()
	rec.m.Operations, rec.m.Elapsed = 1, successor.at.Sub(killed)
	rec.record(rec.m.Handoff, rec.m.Elapsed)
	rec.m.Counters = difference(after, before)
	return rec.m, f.End(ctx)
}

// lost returns an error if a holder's session has ended without being killed. Granting the
// next contender is then correct, and not a violation.
func (f *failover) lost(g failoverGrant) error {
	if err := f.Sessions[g.contender.id-1].Err(); err != nil {
		return fmt.Errorf("contender %d lost its session without being killed: %w", g.contender.id, err)
	}
	return nil
}

func (f *failover) next(ctx context.Context) (failoverGrant, error) {
	select {
	case g := <-f.grants:
		return g, f.guard.enter(g.contender.id, g.held.token)
	case <-ctx.Done():
		return failoverGrant{}, context.Cause(ctx)
	}
}
