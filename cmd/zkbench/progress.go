package main

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/zkrecipes/zkrecipes/bench"
)

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct {
	bar       *progressbar.ProgressBar
	remaining *remaining
	trial     string // the present one, in words
}

func (c command) newProgress(trials []bench.Trial) *progress {
	if _, ok := c.terminal(c.stderr); !ok || c.quiet {
		return &progress{}
	}
	return &progress{progressbar.NewOptions(len(trials),
		progressbar.OptionSetWriter(c.stderr),
		progressbar.OptionSetDescription("trials"),
		progressbar.OptionShowCount(),
		progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false), // it takes all trials for equal
		progressbar.OptionSetRenderBlankState(true),
	), newRemaining(trials), ""}
}

// begin is called before each trial.
func (p *progress) begin(t bench.Trial) {
	if p.bar == nil {
		return
	}
	left := "remaining time not known yet"
	if d, ok := p.remaining.estimate(); ok {
		left = "about " + d.Round(time.Second).String() + " left"
	}
	p.trial = fmt.Sprintf("%s, %s %s of %d", left, t.Strategy, t.Workload, t.Contenders)
	p.bar.Describe(p.trial)
	p.remaining.begin(t, time.Now())
}

// enrol is told how many of a trial's contenders have come so far. Ten thousand take a
// while.
func (p *progress) enrol(what string, done, of int) {
	const steps = 20
	if p.bar == nil || of < 10*steps || done%(of/steps) != 0 {
		return
	}
	description := fmt.Sprintf("%s, %d %s", p.trial, done, what)
	if done == of && what == "in line" {
		description = p.trial
	}
	p.bar.Describe(description)
}

// pause takes the bar away, so that something else can be written to the
// terminal; the next step brings it back.
func (p *progress) pause() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// step is one trial done.
func (p *progress) step() {
	if p.bar != nil {
		p.remaining.end(time.Now())
		_ = p.bar.Add(1)
	}
}

// skip is one trial that is not made.
func (p *progress) skip(t bench.Trial) {
	if p.bar != nil {
		p.remaining.left[combinationOf(t)]--
		_ = p.bar.Add(1)
	}
}

// end takes the bar away for good.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
	}
}
