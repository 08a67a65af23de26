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
	), newRemaining(trials)}
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
	p.bar.Describe(fmt.Sprintf("%s, %s %s of %d", left, t.Strategy, t.Workload, t.Contenders))
	p.remaining.begin(t, time.Now())
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
