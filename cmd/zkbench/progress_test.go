package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
)

// Off a terminal a run is not silent for an hour.
func TestProgressOffATerminalIsALineEvery30Seconds(t *testing.T) {
	var lines []string
	now := time.Unix(0, 0)
	trials := slices.Repeat([]bench.Trial{{Contenders: 1}}, 6)
	p := &progress{
		remaining: newRemaining(trials), of: len(trials), said: now, now: func() time.Time { return now },
		say: func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) },
	}
	p.skip(trials[0])
	for range 5 {
		p.begin(trials[0])
		now = now.Add(16 * time.Second)
		p.step()
	}
	want := []string{"3 of 6 trials, about 48s left", "5 of 6 trials, about 16s left"}
	if !slices.Equal(lines, want) {
		t.Errorf("said %q; want %q", lines, want)
	}
}
