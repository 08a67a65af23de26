package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/table"
)

type show struct {
	raw, quiet bool
	table      string
}

func (s *show) add(f *flag.FlagSet) {
	f.BoolVar(&s.raw, "raw", false, "write the results to stdout even if it is a terminal")
	f.BoolVar(&s.quiet, "quiet", false, "write errors and warnings to stderr, and nothing else")
	f.StringVar(&s.table, "table", "", "table at the end: wide (all columns), narrow (80 characters), none; by default it has\nthe width of the terminal")
}

func (s *show) check() error {
	switch s.table {
	case "", "wide", "narrow", "none":
		return nil
	}
	return fmt.Errorf("-table %q: wide, narrow or none", s.table)
}

func terminal(w io.Writer) (width int, ok bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = table.Narrow
	}
	return width, true
}

// results returns the writer for results in the benchmark format. A person at a terminal reads
// the table instead, so the results are discarded there, unless -raw is given.
func (c command) results(s show) io.Writer {
	if _, ok := c.terminal(c.stdout); ok && !s.raw {
		return io.Discard
	}
	return c.stdout
}

func (c command) tabulate(s show, records []record.Record) error {
	width, _ := c.terminal(c.stderr) // 0 is unlimited
	switch {
	case s.quiet, s.table == "none":
		return nil
	case s.table == "wide":
		width = 0
	case s.table == "narrow":
		width = table.Narrow
	}
	return table.Write(c.stderr, records, width)
}

type progress struct {
	bar   *progressbar.ProgressBar // nil without a terminal
	trial string                   // the current one, in words
	of    int
	stop  chan struct{} // closed to end sayOften

	mu        sync.Mutex
	remaining *remaining
	done      int
	ended     bool
}

// sayEvery is the time between two lines of progress. A trial may take longer.
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
			progressbar.OptionSetPredictTime(false), // it assumes that all trials take the same time
			progressbar.OptionSetRenderBlankState(true),
		)
	}
	return p
}

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

func (p *progress) begin(t bench.Trial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remaining.begin(t, time.Now())
	if p.bar != nil {
		p.trial = fmt.Sprintf("%s, %s %s of %d", p.left(), t.Strategy, t.Workload, t.Contenders)
		p.bar.Describe(p.trial)
	}
}

func (p *progress) left() string {
	if d, ok := p.remaining.estimate(); ok {
		return "about " + d.Round(time.Second).String() + " left"
	}
	return "remaining time not known yet"
}

// enrol shows how many of a trial's contenders are open or in line. Ten thousand take a while.
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

// pause hides the bar, so that something else can be written to the terminal. The next step
// shows it again.
func (p *progress) pause() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// step counts a trial that has ended.
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

// skip counts a trial that is left out.
func (p *progress) skip(t bench.Trial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remaining.left[combinationOf(t)]--
	p.count()
}

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

// remaining estimates how long the remaining trials will take. Trials of one combination take
// about the same time. Those of different combinations do not: a line of a thousand may take a
// thousand times as long as a single contender.
type remaining struct {
	left  map[combination]int
	took  map[combination][]time.Duration
	now   combination
	began time.Time
}

// combination has the settings that decide a trial's duration.
type combination struct {
	recipe, workload, strategy, transport string
	contenders                            int
	delay                                 time.Duration
}

func combinationOf(t bench.Trial) combination {
	return combination{string(t.Recipe), string(t.Workload), string(t.Strategy), t.Transport.Name, t.Contenders, t.Delay}
}

func newRemaining(trials []bench.Trial) *remaining {
	r := &remaining{left: map[combination]int{}, took: map[combination][]time.Duration{}}
	for _, t := range trials {
		r.left[combinationOf(t)]++
	}
	return r
}

func (r *remaining) begin(t bench.Trial, now time.Time) { r.now, r.began = combinationOf(t), now }

func (r *remaining) end(now time.Time) {
	r.left[r.now]--
	r.took[r.now] = append(r.took[r.now], now.Sub(r.began))
}

// estimate returns how long the remaining trials will take. A combination that has run takes its
// mean. One that has not takes the mean per contender of those that have. It returns false before
// the first trial has ended.
func (r *remaining) estimate() (time.Duration, bool) {
	var sum time.Duration
	contenders := 0
	for c, took := range r.took {
		for _, d := range took {
			sum += d
			contenders += c.contenders
		}
	}
	if contenders == 0 {
		return 0, false
	}
	var left time.Duration
	for c, n := range r.left {
		each := sum / time.Duration(contenders) * time.Duration(c.contenders)
		if took := r.took[c]; len(took) > 0 {
			each = mean(took)
		}
		left += time.Duration(n) * each
	}
	return left, true
}

func mean(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}
