package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/zkrecipes/zkrecipes/bench"
)

// progress is a bar on a terminal, and a line now and then elsewhere.
type progress struct {
	bar   *progressbar.ProgressBar // nil off a terminal
	trial string                   // the present one, in words
	of    int
	stop  chan struct{} // ends the lines

	mu        sync.Mutex
	remaining *remaining
	done      int
	ended     bool
}

// sayEvery is the time between two lines. A trial may take longer.
const sayEvery = 30 * time.Second

func (c command) newProgress(trials []bench.Trial) *progress {
	p := &progress{remaining: newRemaining(trials), of: len(trials), stop: make(chan struct{})}
	_, ok := c.terminal(c.stderr)
	switch {
	case c.quiet:
	case !ok:
		go p.sayOften(c.say)
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

// sayOften writes lines until the end.
func (p *progress) sayOften(say say) {
	ticker := time.NewTicker(sayEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			if !p.ended {
				say("%d of %d trials, %s", p.done, p.of, p.left())
			}
			p.mu.Unlock()
		}
	}
}

// begin is called before each trial.
func (p *progress) begin(t bench.Trial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remaining.begin(t, time.Now())
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remaining.end(time.Now())
	p.count()
}

func (p *progress) count() {
	p.done++
	if p.bar != nil {
		_ = p.bar.Add(1)
	}
}

// skip is one trial that is not made.
func (p *progress) skip(t bench.Trial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remaining.left[combinationOf(t)]--
	p.count()
}

// end takes the bar away for good. Nothing is said after it has returned.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		close(p.stop)
	}
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
	}
}
