package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/report"
)

const reportHelp = `Usage: zkbench report [flags] FILE...

Makes an HTML page, figures and tables from records (zkbench run or sweep with -record).
Without flags the tables go to stdout, in Markdown.

Examples:

	zkbench report sweep.jsonl
	zkbench report -html report.html -figures figures sweep.jsonl
	zkbench report -figures figures -insert README.md sweep.jsonl

Rules:

	Page      The page needs no other file and no network. It has throughput,
	          latencies, costs and fairness against contenders, distributions,
	          the plan and the environment.
	Interval  Figures show medians. Bars are 95% confidence intervals; of fewer
	          than six trials there is none.
	Records   Invalid trials are left out and listed. What different machines
	          measured is kept apart, and so are delays.

Exit codes:

	0    everything was written
	1    something could not be written; files that were there before are whole
	2    the flags or the files cannot be used; nothing was written

Flags:

`

// reportVerb is zkbench report.
func (c command) reportVerb(_ context.Context, args []string) error {
	f := flag.NewFlagSet("zkbench report", flag.ContinueOnError)
	html := f.String("html", "", "`file` for the page")
	markdown := f.String("markdown", "", "`file` for the tables")
	figures := f.String("figures", "", "`directory` for the figures, as SVG; it is created")
	insert := f.String("insert", "", "`file` in which to replace what is between the lines "+insertBegin+"\nand "+insertEnd+" by a short table, and the throughput figure of -figures")
	hgrm := f.String("hgrm", "", "`directory` for the percentiles of each line, in milliseconds; it is created")
	if err := c.parse(f, reportHelp, args); err != nil {
		return err
	}
	if f.NArg() == 0 {
		return usageError{errors.New("report needs a file of records; zkbench run -record makes one")}
	}
	if err := distinct(named{"-html", *html}, named{"-markdown", *markdown}, named{"-insert", *insert}); err != nil {
		return usageError{err}
	}
	runs, err := readRuns(f.Args())
	if err != nil {
		return usageError{err}
	}
	sets := report.Group(runs)
	if *html == "" && *markdown == "" && *figures == "" && *hgrm == "" && *insert == "" {
		return report.Markdown(c.stdout, sets)
	}
	files := newFiles()
	defer files.discard()
	files.add("-html", *html, func(w io.Writer) error { return report.HTML(w, sets, planOf(runs)) })
	files.add("-markdown", *markdown, func(w io.Writer) error { return report.Markdown(w, sets) })
	files.figures(*figures, sets)
	files.percentiles(*hgrm, sets)
	files.insert(*insert, *figures, sets)
	return files.commit()
}

// planOf is what plan says about the records, without questions; "" if it says
// nothing.
func planOf(runs []record.Run) string {
	var b strings.Builder
	all, _ := models(runs, 1)
	for _, m := range all {
		s := planSettings{}
		s.at.values = []int{m.Levels[len(m.Levels)-1], m.Reach()}
		s.describe(&b, m)
	}
	return b.String()
}

// files are written beside their places and moved there when all of them are
// complete.
type files struct {
	outputs []*output
	err     error // the first
}

func newFiles() *files { return &files{} }

// add renders a file, unless it has no name or something went wrong before.
func (f *files) add(flag, name string, render func(io.Writer) error) {
	if name == "" || f.err != nil {
		return
	}
	o, err := createOutput(flag, name)
	if err != nil {
		f.err = usageError{err}
		return
	}
	f.outputs = append(f.outputs, o)
	if err := render(o); err != nil {
		f.err = fmt.Errorf("write %s: %w", name, err)
	}
}

func (f *files) directory(name string) bool {
	if name == "" || f.err != nil {
		return false
	}
	f.err = os.MkdirAll(name, 0o777)
	return f.err == nil
}

func (f *files) figures(dir string, sets []report.Set) {
	if !f.directory(dir) {
		return
	}
	for i, s := range sets {
		for _, figure := range report.Figures(s) {
			f.add("-figures", figureFile(dir, i, figure), func(w io.Writer) error { return report.SVG(w, figure) })
		}
	}
}

func (f *files) percentiles(dir string, sets []report.Set) {
	if !f.directory(dir) {
		return
	}
	for i, s := range sets {
		for _, lines := range s.Series {
			for _, level := range lines.Levels {
				if level.Histogram() == nil {
					continue
				}
				name := filepath.Join(dir, fmt.Sprintf("%d-%s-%d.hgrm", i+1, lines.Name, level.Contenders))
				f.add("-hgrm", name, func(w io.Writer) error { return report.Percentiles(w, level) })
			}
		}
	}
}

func (f *files) commit() error {
	if f.err != nil {
		return f.err
	}
	for _, o := range f.outputs {
		if err := o.commit(); err != nil {
			return err
		}
	}
	return nil
}

func (f *files) discard() {
	for _, o := range f.outputs {
		o.discard()
	}
}
