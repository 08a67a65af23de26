package load

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

type line struct {
	Load
	shape    shape
	started  time.Time
	parent   context.Context // outlives stop
	stop     context.CancelFunc
	over     atomic.Bool // set before stop is called
	rest     *rest
	guard    guard
	recorder *recorder
	entrance chan struct{} // bounds how many join for the first time at once
	headed   chan struct{} // closed when the first contender has joined
	joined   []joining     // by id

	// The fields below pass from holder to holder; the guard orders the accesses.
	turns  int64         // taken so far
	first  time.Duration // when the first contender was granted
	begun  bool          // the measured part has begun, or begins when the current holder leaves
	began  time.Duration // when that holder called leave
	left   time.Duration // when the latest holder called leave
	before recipes.Stats
}

// joining is when a contender last joined the line. The Joined callback writes it, and
// returns before the acquiring call does.
type joining struct {
	at    time.Duration
	first bool // until the contender joins for the first time
}

// errOver is returned to contenders that still waited when the load ended, and to the last
// holder.
var errOver = errors.New("the load is over")

func (l Load) contend(ctx context.Context, s shape) (Measurement, error) {
	li := &line{
		Load: l, shape: s, started: time.Now(), parent: ctx, rest: newRest(), guard: guard{sessions: l.Sessions}, recorder: newRecorder(),
		entrance: make(chan struct{}, parallelism), headed: make(chan struct{}), joined: make([]joining, len(l.Sessions)+1),
	}
	contenders, err := l.contenders(li.join)
	if err != nil {
		return Measurement{}, err
	}
	ctx, li.stop = context.WithCancel(ctx)
	defer li.stop()
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range contenders {
		group.Go(func() error { return li.contender(ctx, c) })
	}
	if err := group.Wait(); err != nil {
		return Measurement{}, err
	}
	return li.recorder.m, li.guard.check(li.turns)
}

func (l *line) now() time.Duration { return time.Since(l.started) }

// head is the id of the contender that joins before all others. It is granted without a
// wait, so its turn costs the same in each trial.
const head = 1

func (l *line) contender(ctx context.Context, c contender) error {
	l.joined[c.id].first = true
	if c.id != head {
		select {
		case <-l.headed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case l.entrance <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		err := l.takeTurn(ctx, c)
		switch {
		case errors.Is(err, errOver):
			return nil
		case err != nil:
			return fmt.Errorf("contender %d: %w", c.id, err)
		case !l.shape.again():
			l.rest.add(1)
			return nil
		}
	}
}

func (l *line) join(id int64) {
	j := &l.joined[id]
	j.at = l.now()
	if j.first {
		j.first = false
		if id == head {
			close(l.headed)
		}
		l.Enrolled()
		<-l.entrance
	}
	l.rest.add(1)
}

func (l *line) takeTurn(ctx context.Context, c contender) error {
	asked := l.now()
	held, err := c.acquire(ctx)
	granted := l.now()
	switch {
	case err != nil && l.over.Load():
		return errOver
	case err != nil:
		return err
	case l.over.Load():
		// The contender was granted while finish cancelled it.
		if err := held.release(l.parent); err != nil {
			return fmt.Errorf("leave: %w", err)
		}
		return errOver
	}
	l.rest.add(-1)
	if err := l.guard.enter(c.id, held.token); err != nil {
		return err
	}
	measured, last := l.granted(c.id, asked, granted)
	if last {
		return l.finish(ctx, c, held)
	}
	if err := l.hold(ctx, granted); err != nil {
		return err
	}
	if err := l.leave(ctx, c, held); err != nil {
		return err
	}
	if measured {
		l.recorder.record(l.recorder.m.Service, l.now()-granted)
	}
	return nil
}

// granted records the grant of a new holder. It reports whether the turn belongs to the
// measured part, and whether it is the last one.
func (l *line) granted(id int64, asked, granted time.Duration) (measured, last bool) {
	if l.turns == 0 {
		l.first = granted
	}
	if !l.begun {
		return false, false
	}
	m := &l.recorder.m
	m.Operations++
	m.Elapsed = granted - l.began
	if m.Turns != nil {
		m.Turns[id-1]++
	}
	if asked >= l.began {
		l.recorder.record(m.Wait, granted-asked)
	}
	if l.joined[id].at <= l.left { // never for a single contender
		l.recorder.record(m.Handoff, granted-l.left)
	}
	return true, l.shape.ends(m.Operations, m.Elapsed)
}

// hold keeps the grant for Load.Hold. The holder that begins the measured part keeps it
// until all others are at rest and Begin has returned.
func (l *line) hold(ctx context.Context, granted time.Duration) error {
	if l.begun || !l.shape.begins(granted-l.first, l.turns) {
		return pause(ctx, l.Hold)
	}
	var err error
	if l.before, err = l.standstill(ctx); err != nil {
		return err
	}
	l.begun = true
	l.recorder.m.Warm = Warm{Took: granted - l.first, Steady: l.shape.steady()}
	if l.shape.again() {
		l.recorder.m.Turns = make([]int64, len(l.Sessions))
	}
	return l.Begin(ctx)
}

func (l *line) leave(ctx context.Context, c contender, held grant) error {
	l.turns++
	l.left = l.now()
	if l.begun && l.began == 0 {
		l.began = l.left
	}
	l.guard.leave()
	if err := held.release(ctx); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// standstill waits, as the holder, until all others are at rest, and returns the counters.
func (l *line) standstill(ctx context.Context) (recipes.Stats, error) {
	if err := l.rest.await(ctx, int64(len(l.Sessions))-1); err != nil {
		return recipes.Stats{}, err
	}
	return settled(ctx, l.Sessions)
}

// finish ends the measurement and cancels the waiters while the last holder still holds.
// A waiter that is granted before it is cancelled leaves at once: see takeTurn.
func (l *line) finish(ctx context.Context, c contender, held grant) error {
	after, err := l.standstill(ctx)
	if err != nil {
		return err
	}
	l.recorder.m.Counters = difference(after, l.before)
	if err := l.End(ctx); err != nil {
		return err
	}
	l.over.Store(true)
	l.stop()
	if err := l.leave(l.parent, c, held); err != nil {
		return err
	}
	return errOver
}
