package load

import (
	"context"
	"errors"
	"fmt"
	"math"
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

// shape decides when the measured part of a load begins and ends, and whether contenders
// join again. One holder at a time calls it.
type shape interface {
	// begins reports whether the measured part begins when the current holder leaves. It
	// gets the time since the first grant of the load, and the turns taken.
	begins(running time.Duration, turns int64) bool
	// steady reports whether the load was steady when the measured part began.
	steady() bool
	// ends reports whether the measured part ends with this grant. It gets the operations
	// and the time until then.
	ends(operations int64, elapsed time.Duration) bool
	// again reports whether a contender that has left joins again.
	again() bool
}

// turnsAlone is how many turns a drain of one contender measures, because a single
// contender makes no handoff.
const turnsAlone = 100

type drain struct{ contenders int }

func (d drain) begins(time.Duration, int64) bool { return true }
func (d drain) steady() bool                     { return true }
func (d drain) again() bool                      { return d.contenders == 1 }

func (d drain) ends(operations int64, _ time.Duration) bool {
	if d.contenders == 1 {
		return operations == turnsAlone
	}
	return operations == int64(d.contenders)-1
}

// cycle begins with the first grant after the warm-up. It ends with the first grant after
// the duration, but has at least as many handoffs as contenders. With fewer, none of the
// requests of the measured part would be granted, and there would be no waits to record.
type cycle struct {
	warmup
	duration   time.Duration
	contenders int64
}

func (c *cycle) begins(running time.Duration, turns int64) bool { return c.done(running, turns) }
func (c *cycle) again() bool                                    { return true }

func (c *cycle) ends(handoffs int64, elapsed time.Duration) bool {
	return elapsed >= c.duration && handoffs >= c.contenders
}

const (
	// steadyWindows is how many windows in a row must agree, and steadyWithin how far each
	// may be from their mean.
	steadyWindows = 3
	steadyWithin  = 0.10
	// windowTurns is the smallest number of turns in a window.
	windowTurns = 10
	// longestWarmup limits a warm-up that does not become steady, in multiples of the
	// shortest.
	longestWarmup = 8
)

// warmup decides when a load has warmed up: it has run for shortest, and the rates of the
// last three windows lie within 10 % of their mean. A window is a quarter of shortest and
// at least ten turns. After eight times shortest the warm-up ends even if it is not steady.
type warmup struct {
	shortest time.Duration

	since  time.Duration // when the current window began
	turns  int64         // how many turns had been taken by then
	rates  [steadyWindows]float64
	filled int
}

// done reports whether the warm-up has ended. It is called at each grant of the warm-up.
func (w *warmup) done(running time.Duration, turns int64) bool {
	if length := running - w.since; length >= w.shortest/4 && turns-w.turns >= windowTurns {
		copy(w.rates[:], w.rates[1:])
		w.rates[steadyWindows-1] = float64(turns-w.turns) / max(length, 1).Seconds()
		w.filled++
		w.since, w.turns = running, turns
	}
	return running >= w.shortest && (w.steady() || running >= longestWarmup*w.shortest)
}

func (w *warmup) steady() bool {
	if w.filled < steadyWindows {
		return false
	}
	var sum float64
	for _, rate := range w.rates {
		sum += rate
	}
	mean := sum / steadyWindows
	for _, rate := range w.rates {
		if math.Abs(rate-mean) > steadyWithin*mean {
			return false
		}
	}
	return true
}
