package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/table"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/printable"
)

// terminalWidth returns the width of a terminal. ok is false if w is not a terminal.
func terminalWidth(w io.Writer) (width int, ok bool) {
	f, ok := printable.Below(w).(*os.File)
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
	if err := table.Write(c.stderr, records, width); err != nil {
		return err
	}
	return c.sayFaults(records)
}

func (c command) sayFaults(records []record.Record) error {
	faults := report.Faults(records)
	if len(faults.Rows) == 0 {
		return nil
	}
	_, err := fmt.Fprint(c.stderr, "\n", table.Align(append([][]string{faults.Head}, faults.Rows...), 0))
	return err
}

type progress struct {
	bar   *progressbar.ProgressBar // nil without a terminal
	trial string                   // the current one, in words
	of    int
	stop  chan struct{} // closed to end sayOften

	mu    sync.Mutex
	done  int
	ended bool

	// A line of a thousand takes much longer than a single contender, so the remaining time
	// counts contenders and not trials.
	now       int // contenders of the current trial
	began     time.Time
	left, ran int           // contenders of the trials that are left, and of those that have run
	took      time.Duration // how long the trials took that have run
}

// sayEvery is the time between two lines of progress. A trial may take longer.
const sayEvery = 30 * time.Second

func (c command) newProgress(trials []bench.Trial) *progress {
	p := newProgress(trials)
	_, ok := c.terminal(c.stderr)
	switch {
	case c.quiet:
	case !ok:
		go p.sayOften(c.say)
	default:
		p.bar = progressbar.NewOptions(len(trials),
			progressbar.OptionSetWriter(printable.Below(c.stderr)),
			progressbar.OptionSetDescription("trials"),
			progressbar.OptionShowCount(),
			progressbar.OptionFullWidth(),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(false), // the library's prediction assumes that all trials take the same time
			progressbar.OptionSetRenderBlankState(true),
		)
	}
	return p
}

func newProgress(trials []bench.Trial) *progress {
	p := &progress{of: len(trials), stop: make(chan struct{})}
	for _, t := range trials {
		p.left += t.Contenders
	}
	return p
}

func (p *progress) sayOften(say func(string, ...any)) {
	ticker := time.NewTicker(sayEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			if !p.ended {
				say("%d of %s, %s", p.done, english.Count(p.of, "trial"), p.remaining())
			}
			p.mu.Unlock()
		}
	}
}

func (p *progress) beginTrial(t bench.Trial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now, p.began = t.Contenders, time.Now()
	if p.bar != nil {
		p.trial = fmt.Sprintf("%s, %s %s of %d", p.remaining(), t.Strategy, t.Workload, t.Contenders)
		p.bar.Describe(p.trial)
	}
}

func (p *progress) remaining() string {
	if p.ran == 0 {
		return "remaining time not known yet"
	}
	d := time.Duration(float64(p.took) / float64(p.ran) * float64(p.left))
	return "about " + d.Round(time.Second).String() + " left"
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

func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took += time.Since(p.began)
	p.ran += p.now
	p.countTrial(p.now)
}

func (p *progress) countTrial(contenders int) {
	p.done++
	p.left -= contenders
	if p.bar != nil {
		_ = p.bar.Add(1)
	}
}

func (p *progress) skip(t bench.Trial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.countTrial(t.Contenders)
}

func (p *progress) endAll() {
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
