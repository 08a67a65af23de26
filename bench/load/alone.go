package load

import (
	"context"
	"fmt"
	"time"
)

// alone measures the turns of a single contender: what a lock costs when nobody
// else wants it. A Drain takes turnsAlone turns, a Cycle as many as its duration
// allows.
func (l Load) alone(ctx context.Context) (Measurement, error) {
	all, err := l.contenders(func(int64) {})
	if err != nil {
		return Measurement{}, err
	}
	s := &solo{Load: l, contender: all[0], recorder: newRecorder()}
	if err := s.warmup(ctx); err != nil {
		return Measurement{}, err
	}
	counters, err := l.counted(ctx, s.measure)
	if err != nil {
		return Measurement{}, err
	}
	s.recorder.m.Counters = counters
	s.recorder.m.Warm.Took = l.Warmup
	return s.recorder.m, s.guard.check(s.turns)
}

// solo is a load of one contender under way.
type solo struct {
	Load
	contender contender
	guard     guard
	recorder  *recorder
	turns     int64
}

// warmup takes at least one turn, which makes the parents of the path.
func (s *solo) warmup(ctx context.Context) error {
	start := time.Now()
	for {
		if _, _, err := s.turn(ctx); err != nil {
			return err
		}
		if s.Workload == Drain || time.Since(start) >= s.Warmup {
			return nil
		}
	}
}

func (s *solo) measure(ctx context.Context) error {
	m := &s.recorder.m
	start := time.Now()
	for !s.enough(time.Since(start)) {
		wait, service, err := s.turn(ctx)
		if err != nil {
			return err
		}
		m.Operations++
		s.recorder.record(m.Wait, wait)
		s.recorder.record(m.Service, service)
	}
	m.Elapsed = time.Since(start)
	return nil
}

func (s *solo) enough(elapsed time.Duration) bool {
	taken := s.recorder.m.Operations
	if s.Workload == Drain {
		return taken >= turnsAlone
	}
	return taken > 0 && elapsed >= s.Duration
}

func (s *solo) turn(ctx context.Context) (wait, service time.Duration, err error) {
	asked := time.Now()
	turn, err := s.contender.enter(ctx)
	granted := time.Now()
	if err != nil {
		return 0, 0, err
	}
	if err := s.guard.enter(s.contender.id, turn.token); err != nil {
		return 0, 0, err
	}
	if err := pause(ctx, s.Hold); err != nil {
		return 0, 0, err
	}
	s.turns++
	if err := s.guard.leave(s.contender.id); err != nil {
		return 0, 0, err
	}
	if err := turn.leave(ctx); err != nil {
		return 0, 0, fmt.Errorf("leave: %w", err)
	}
	return granted.Sub(asked), time.Since(granted), nil
}
