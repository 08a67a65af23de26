package main

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/zkrecipes/zkrecipes/bench"
)

// progress is a bar on a terminal, and a line now and then elsewhere.
type progress struct {
	bar       *progressbar.ProgressBar // nil off a terminal
	say       say                      // nil on a terminal, and where progress is of no interest
	remaining *remaining
	trial     string // the present one, in words
	done, of  int
	said      time.Time // when the last line was written
	now       func() time.Time
}

// sayEvery is the least time between two lines.
const sayEvery = 30 * time.Second

func (c command) newProgress(trials []bench.Trial) *progress {
	p := &progress{remaining: newRemaining(trials), of: len(trials), said: time.Now(), now: time.Now}
	_, ok := c.terminal(c.stderr)
	switch {
	case c.quiet:
	case !ok:
		p.say = c.say
	default:
		p.bar = progressbar.NewOptions(len(trials),
			progressbar.OptionSetWriter(c.stderr),
			progressbar.OptionSetDescription("trials"),
			progressbar.OptionShowCount(),
			progressbar.OptionFullWidth(),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(false), // it takes all trials for equal
			progressbar.OptionSetRenderBlankState(true),
		)
	}
	return p
}

// begin is called before each trial.
func (p *progress) begin(t bench.Trial) {
	p.remaining.begin(t, p.now())
	if p.bar != nil {
		p.trial = fmt.Sprintf("%s, %s %s of %d", p.left(), t.Strategy, t.Workload, t.Contenders)
		p.bar.Describe(p.trial)
	}
}

// left says how long the rest will take.
func (p *progress) left() string {
	if d, ok := p.remaining.estimate(); ok {
		return "about " + d.Round(time.Second).String() + " left"
	}
	return "remaining time not known yet"
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
	now := p.now()
	p.remaining.end(now)
	p.done++
	if p.bar != nil {
		_ = p.bar.Add(1)
	}
	if p.say != nil && p.done < p.of && now.Sub(p.said) >= sayEvery {
		p.said = now
		p.say("%d of %d trials, %s", p.done, p.of, p.left())
	}
}

// skip is one trial that is not made.
func (p *progress) skip(t bench.Trial) {
	p.remaining.left[combinationOf(t)]--
	p.done++
	if p.bar != nil {
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
