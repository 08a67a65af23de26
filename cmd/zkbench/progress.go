package main

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(w io.Writer, trials int) *progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions(trials,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("trials"),
		progressbar.OptionShowCount(),
		progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetRenderBlankState(true),
	)}
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
