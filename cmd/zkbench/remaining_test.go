package main

import (
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
)

func TestRemainingTimeKnowsThatTrialsDiffer(t *testing.T) {
	small, large := bench.Trial{Contenders: 1}, bench.Trial{Contenders: 100}
	r := newRemaining([]bench.Trial{small, large, small, large})
	if _, ok := r.estimate(); ok {
		t.Error("something is known before the first trial")
	}
	now := time.Unix(0, 0)
	run := func(trial bench.Trial, d time.Duration) {
		r.begin(trial, now)
		now = now.Add(d)
		r.end(now)
	}
	run(small, time.Second)
	if got, _ := r.estimate(); got != 201*time.Second {
		t.Errorf("after the small one: %v; want 201s, by contenders", got)
	}
	run(large, 9*time.Second)
	if got, _ := r.estimate(); got != 10*time.Second {
		t.Errorf("after one of each: %v; want 10s", got)
	}
}
