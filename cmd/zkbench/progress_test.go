package main

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
)

// Off a terminal a run is not silent for an hour, also if one trial takes that long.
func TestProgressOffATerminalIsALineEvery30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		trials := slices.Repeat([]bench.Trial{{Contenders: 1}}, 4)
		p := &progress{remaining: newRemaining(trials), of: len(trials), stop: make(chan struct{})}
		go p.sayOften(func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) })
		p.skip(trials[0])
		for _, takes := range []time.Duration{31, 17, 43} {
			p.begin(trials[0])
			time.Sleep(takes * time.Second)
			p.step()
		}
		p.end()
		time.Sleep(time.Hour)
		want := []string{"1 of 4 trials, remaining time not known yet", "3 of 4 trials, about 24s left", "3 of 4 trials, about 24s left"}
		if !slices.Equal(lines, want) {
			t.Errorf("said %q; want %q", lines, want)
		}
	})
}
