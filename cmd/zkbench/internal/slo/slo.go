// Package slo finds the largest load under an objective. It doubles the load until the
// objective is missed. Then it halves the gap between the last pass and the first fail
// until the gap is small enough. It probes each load several times and judges by the
// median, because one disturbed probe would send the whole search the wrong way.
package slo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrMissed is what a probe returns if the load could not be sustained at all. It counts as
// infinitely far from the objective.
var ErrMissed = errors.New("the load could not be sustained")

// Search is the range and the goal of a search. Loads are whole numbers: contenders, or
// arrivals a second.
type Search struct {
	From, To int // the first load to try, and the largest
	// Limit is the objective: the median of the probes must not exceed it.
	Limit float64
	// Probes is how many probes each load gets, at least 1.
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

// Median is the median of the level's probes, the worse of two middle ones.
func (l Level) Median() float64 {
	return slices.Sorted(slices.Values(l.Values))[len(l.Values)/2]
}

// Result is what a search found.
type Result struct {
	Levels []Level // in the order in which they were tried
	// FirstFail is the smallest load that failed, and LastPass the largest below it that
	// passed. FirstFail is 0 if no load failed, LastPass if none passed.
	LastPass, FirstFail int
}

// Check returns an error if the search cannot run.
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

// Run searches. probe runs a load and returns the figure of the objective. An error other
// than ErrMissed ends the search; the result then has the levels that were decided before.
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

// level probes a load until no further probe can change its verdict.
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
