package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Grant is one grant of a line that several processes share. Its times are by the clock of
// the process that was granted, and count from the beginning of the measured part there.
// Times before that are negative.
type Grant struct {
	Token                 recipes.Token
	Joined, Granted, Left time.Duration
}

// share is this process's part of a line that several processes share.
//
// In a line of one process, a holder ends the measured part while all others are at rest.
// Here the holder is usually in another process. So the measured part begins when all have
// joined, with a holder that waits until Begin has returned, and ends when all have left.
type share struct {
	Load
	started  time.Time
	rest     *rest
	guard    guard
	recorder *recorder
	entrance chan struct{}   // bounds how many join for the first time at once
	joined   []time.Duration // by id: when the contender last joined
	there    []bool          // by id: whether it has joined before
	start    chan struct{}   // closed when Begin has returned, at began
	began    time.Duration
	turns    atomic.Int64
}

// shared runs this process's part of a drain or a cycle. The warm-up of a cycle has a path
// of its own, because the holder of the measured path waits for Begin.
func (l Load) shared(ctx context.Context) (Measurement, error) {
	if l.Workload == Cycle && l.Warmup > 0 {
		warm := l
		warm.Path, warm.Duration, warm.Begin, warm.End = l.Path+"/warm-up", l.Warmup, nothing, nothing
		if _, err := warm.part(ctx); err != nil {
			return Measurement{}, fmt.Errorf("warm up: %w", err)
		}
	}
	m, err := l.part(ctx)
	m.Warm = Warm{Took: l.Warmup, Steady: l.Workload == Drain}
	return m, err
}

func (l Load) part(ctx context.Context) (Measurement, error) {
	n := len(l.Sessions)
	s := &share{
		Load: l, started: time.Now(), rest: newRest(), guard: guard{sessions: l.Sessions}, recorder: newRecorder(),
		entrance: make(chan struct{}, parallelism), start: make(chan struct{}),
		joined: make([]time.Duration, n+1), there: make([]bool, n+1),
	}
	if l.Workload == Cycle {
		s.recorder.m.Turns = make([]int64, n)
	}
	contenders, err := l.contenders(s.join)
	if err != nil {
		return Measurement{}, err
	}
	group, gctx := errgroup.WithContext(ctx)
	for _, c := range contenders {
		group.Go(func() error {
			if err := s.contender(gctx, c); err != nil {
				return fmt.Errorf("contender %d: %w", c.id, err)
			}
			return nil
		})
	}
	var before recipes.Stats
	group.Go(func() (err error) {
		before, err = s.commence(gctx)
		return err
	})
	if err := group.Wait(); err != nil {
		return Measurement{}, err
	}
	after, err := settled(ctx, l.Sessions)
	if err != nil {
		return Measurement{}, err
	}
	s.recorder.m.Counters = difference(after, before)
	if err := l.End(ctx); err != nil {
		return Measurement{}, err
	}
	return s.recorder.m, s.guard.check(s.turns.Load())
}

func (s *share) now() time.Duration { return time.Since(s.started) }

func (s *share) join(id int64) {
	s.joined[id] = s.now()
	if !s.there[id] {
		s.there[id] = true
		s.Enrolled()
		<-s.entrance
		s.rest.add(1)
	}
}

func (s *share) commence(ctx context.Context) (recipes.Stats, error) {
	if err := s.rest.await(ctx, int64(len(s.Sessions))); err != nil {
		return recipes.Stats{}, err
	}
	before, err := settled(ctx, s.Sessions)
	if err != nil {
		return recipes.Stats{}, err
	}
	if err := s.Begin(ctx); err != nil {
		return recipes.Stats{}, err
	}
	s.began = s.now()
	close(s.start)
	return before, nil
}

func (s *share) contender(ctx context.Context, c contender) error {
	select {
	case s.entrance <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		asked, left, err := s.takeTurn(ctx, c)
		if err != nil {
			return err
		}
		if s.Workload == Drain || left >= s.Duration && asked >= 0 {
			return nil
		}
	}
}

// takeTurn takes one turn. It returns when it was requested and when it ended, both counted
// from the beginning of the measured part.
func (s *share) takeTurn(ctx context.Context, c contender) (from, to time.Duration, err error) {
	asked := s.now()
	held, err := c.acquire(ctx)
	granted := s.now()
	if err != nil {
		return 0, 0, err
	}
	if err := s.guard.enter(c.id, held.token); err != nil {
		return 0, 0, err
	}
	select { // only the first holder has to wait here
	case <-s.start:
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	}
	if err := pause(ctx, s.Hold); err != nil {
		return 0, 0, err
	}
	s.turns.Add(1)
	left := s.now()
	s.guard.leave()
	s.granted(c.id, asked, Grant{held.token, s.joined[c.id] - s.began, granted - s.began, left - s.began})
	if err := held.release(ctx); err != nil {
		return 0, 0, fmt.Errorf("leave: %w", err)
	}
	s.recorder.record(s.recorder.m.Service, s.now()-granted)
	return asked - s.began, left - s.began, nil
}

func (s *share) granted(id int64, asked time.Duration, g Grant) {
	if asked >= s.began {
		s.recorder.record(s.recorder.m.Wait, g.Granted+s.began-asked)
	}
	s.recorder.count(func(m *Measurement) {
		m.Operations++
		m.Elapsed = max(m.Elapsed, g.Granted)
		m.Grants = append(m.Grants, g)
		if m.Turns != nil {
			m.Turns[id-1]++
		}
	})
}

// many cycles Lines independent lines at once. They begin their measured parts together,
// when all have warmed up, and each waits at its end for the others. So no line is measured
// while another one warms up. A line that has ended may rest while others still run.
func (l Load) many(ctx context.Context) (Measurement, error) {
	if l.Lines < 1 || len(l.Sessions)%l.Lines != 0 {
		return Measurement{}, fmt.Errorf("%d sessions cannot be divided evenly among %d lines", len(l.Sessions), l.Lines)
	}
	each := len(l.Sessions) / l.Lines
	begin, end := meeting(l.Lines, l.Begin), meeting(l.Lines, l.End)
	parts := make([]Measurement, l.Lines)
	group, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		line := l
		line.Workload, line.Path = Cycle, fmt.Sprintf("%s/line-%d", l.Path, i)
		line.Sessions = l.Sessions[i*each : (i+1)*each]
		line.Begin, line.End = begin, end
		group.Go(func() (err error) {
			if parts[i], err = line.Run(ctx); err != nil {
				return fmt.Errorf("line %d: %w", i+1, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return Measurement{}, err
	}
	return merge(parts), nil
}

// meeting returns a function with which n lines wait for each other, once. The last line to arrive
// calls the function then, and all lines return the error of that call.
func meeting(n int, then func(context.Context) error) func(context.Context) error {
	var missing atomic.Int64
	missing.Store(int64(n))
	all := make(chan struct{})
	var err error
	return func(ctx context.Context) error {
		if missing.Add(-1) == 0 {
			err = then(ctx)
			close(all)
		}
		select {
		case <-all:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
