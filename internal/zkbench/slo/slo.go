// Package slo finds the largest load under an objective. It doubles the load until the
// objective is missed. Then it halves the gap between the last pass and the first fail
// until that is small enough. Every load is probed several times and judged by the
// median, because a single probe that meets a neighbour's noise would send the search
// the wrong way for good.
package slo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrMissed is returned by a probe under which the load could not be sustained at
// all: it counts as infinitely far from the objective.
var ErrMissed = errors.New("the load could not be sustained")

// Search says where to look. Loads are whole numbers: contenders, or arrivals a
// second.
type Search struct {
	From, To int // the first load that is tried, and the greatest
	// Limit is what the median of the probes must not exceed.
	Limit float64
	// Probes is how many there are at each load, at least 1.
	Probes int
	// Precision ends the search when the first fail is within this share of the
	// last pass: 0.05 is 5 %.
	Precision float64
}

// Level is a load that was tried.
type Level struct {
	Load   int
	Values []float64 // of the probes; +Inf for a load that could not be sustained
	Passed bool
}

// Median is the median of the level's probes, the worse one of two middle ones.
func (l Level) Median() float64 {
	return slices.Sorted(slices.Values(l.Values))[len(l.Values)/2]
}

// Result is what a search found.
type Result struct {
	Levels []Level // in the order in which they were tried
	// LastPass is the greatest load that passed below FirstFail, the smallest that
	// failed. 0 stands for no such load.
	LastPass, FirstFail int
}

// Check says what is wrong with a search.
func (s Search) Check() error {
	switch {
	case s.From < 1 || s.To < s.From:
		return fmt.Errorf("slo: from %d to %d; from 1 or more, upwards", s.From, s.To)
	case s.Probes < 1:
		return fmt.Errorf("slo: %d probes; at least 1", s.Probes)
	case !(s.Limit > 0) || !(s.Precision > 0):
		return errors.New("slo: limit and precision must be more than 0")
	}
	return nil
}

// Run searches. probe puts a load on and returns the figure of the objective. With
// an error of it other than ErrMissed the search ends, and the result is what was
// found until then.
func (s Search) Run(ctx context.Context, probe func(ctx context.Context, load int) (float64, error)) (Result, error) {
	var r Result
	if err := s.Check(); err != nil {
		return r, err
	}
	try := func(load int) error {
		level, err := s.level(ctx, load, probe)
		if err != nil {
			return err
		}
		r.Levels = append(r.Levels, level)
		if level.Passed {
			r.LastPass = max(r.LastPass, load)
		} else {
			r.FirstFail = load
		}
		return nil
	}
	for load := s.From; r.FirstFail == 0; load = min(2*load, s.To) {
		if err := try(load); err != nil {
			return r, err
		}
		if load == s.To {
			break
		}
	}
	for r.LastPass > 0 && r.FirstFail > 0 && s.wide(r) {
		if err := try(r.LastPass + (r.FirstFail-r.LastPass)/2); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (s Search) wide(r Result) bool {
	gap := r.FirstFail - r.LastPass
	return gap > 1 && float64(gap) > s.Precision*float64(r.LastPass)
}

// level probes a load until its median is decided.
func (s Search) level(ctx context.Context, load int, probe func(context.Context, int) (float64, error)) (Level, error) {
	level := Level{Load: load}
	passed, failed := 0, 0
	majority := s.Probes/2 + 1
	for passed < majority && failed < majority && passed+failed < s.Probes {
		v, err := probe(ctx, load)
		switch {
		case errors.Is(err, ErrMissed):
			v = math.Inf(1)
		case err != nil:
			return level, err
		}
		level.Values = append(level.Values, v)
		if v <= s.Limit {
			passed++
		} else {
			failed++
		}
	}
	level.Passed = passed >= majority
	return level, nil
}
