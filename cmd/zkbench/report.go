package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/output"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
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
	          latencies, costs and fairness by contenders, distributions, the plan
	          and the environment.
	Interval  Figures show medians. Bars are 95% confidence intervals; with fewer
	          than six trials there is none.
	Timeline  Timelines are drawn over time, with the faults marked.
	Records   Invalid trials are left out and listed. Results of different machines
	          and of different delays have tables of their own.

Exit codes:

	0    everything was written
	1    something could not be written; no existing file is damaged
	2    the flags or the files cannot be used; nothing was written`

func (c command) reportVerb(_ context.Context, args []string) error {
	f := flag.NewFlagSet("zkbench report", flag.ContinueOnError)
	html := f.String("html", "", helptext.Common("`file` for the page"))
	markdown := f.String("markdown", "", helptext.Common("`file` for the tables"))
	figures := f.String("figures", "", helptext.Common("`directory` for the figures, as SVG; it is created"))
	insert := f.String("insert", "", "`file` in which a short table, and the throughput figure of -figures, replace the text\nbetween the lines "+insertBegin+" and "+insertEnd)
	hgrm := f.String("hgrm", "", "`directory` for the percentiles of each line, in milliseconds; it is created")
	if err := c.parse(f, reportHelp, args); err != nil {
		return err
	}
	if f.NArg() == 0 {
		return exit.Usage(errors.New("report needs a file of records; zkbench run -record makes one"))
	}
	if err := output.Distinct(output.Named{Flag: "-html", File: *html}, output.Named{Flag: "-markdown", File: *markdown}, output.Named{Flag: "-insert", File: *insert}); err != nil {
		return exit.Usage(err)
	}
	runs, err := readRuns(f.Args()...)
	if err != nil {
		return exit.Usage(err)
	}
	sets := report.Group(runs)
	if *html == "" && *markdown == "" && *figures == "" && *hgrm == "" && *insert == "" {
		return report.Markdown(c.stdout, sets)
	}
	var files reportFiles
	defer files.Discard()
	files.add("-html", *html, func(w io.Writer) error { return report.HTML(w, sets, planOf(runs)) })
	files.add("-markdown", *markdown, func(w io.Writer) error { return report.Markdown(w, sets) })
	files.figures(*figures, sets)
	files.percentiles(*hgrm, sets)
	files.insert(*insert, *figures, sets)
	return files.Commit()
}

// planOf returns the output of plan for the records, without any question. It is "" if no model
// can be fitted.
func planOf(runs []record.Run) string {
	var b strings.Builder
	all, _ := fitModels(runs, 1)
	for _, m := range all {
		planSettings{rtt: -1, at: []int{m.Levels[len(m.Levels)-1], m.Reach()}}.describe(&b, m)
	}
	return b.String()
}

// reportFiles are written beside their final paths and moved there when all are complete.
type reportFiles struct{ output.Set }

func (f *reportFiles) add(flag, name string, render func(io.Writer) error) {
	if o := f.Create(flag, name); o != nil {
		if err := render(o); err != nil {
			f.Err = fmt.Errorf("write %s: %w", name, err)
		}
	}
}

func (f *reportFiles) directory(name string) bool {
	if name == "" || f.Err != nil {
		return false
	}
	f.Err = os.MkdirAll(name, 0o777)
	return f.Err == nil
}

func (f *reportFiles) figures(dir string, sets []report.Set) {
	if !f.directory(dir) {
		return
	}
	for i, s := range sets {
		for _, figure := range report.Figures(s) {
			f.add("-figures", figureFile(dir, i, figure), func(w io.Writer) error { return report.SVG(w, figure) })
		}
	}
}

func (f *reportFiles) percentiles(dir string, sets []report.Set) {
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

// Markers of a page, between which -insert writes.
const (
	insertBegin = "<!-- zkbench report: begin -->"
	insertEnd   = "<!-- zkbench report: end -->"
)

func replaceBetween(page, text []byte) ([]byte, error) {
	begin, end := bytes.Index(page, []byte(insertBegin)), bytes.Index(page, []byte(insertEnd))
	if begin < 0 || end < begin || bytes.Count(page, []byte(insertBegin)) != 1 || bytes.Count(page, []byte(insertEnd)) != 1 {
		return nil, fmt.Errorf("it needs the line %s and below it the line %s, once each", insertBegin, insertEnd)
	}
	return bytes.Join([][]byte{page[:begin+len(insertBegin)], []byte("\n"), text, page[end:]}, nil), nil
}

func (f *reportFiles) insert(name, figures string, sets []report.Set) {
	if name == "" || f.Err != nil {
		return
	}
	page, err := os.ReadFile(name)
	if err != nil {
		f.Err = exit.Usage(fmt.Errorf("-insert: %w", err))
		return
	}
	picture := func(set int, figure report.Figure) string {
		if figures == "" {
			return ""
		}
		path, err := filepath.Rel(filepath.Dir(name), figureFile(figures, set, figure))
		if err != nil {
			return "" // a page cannot link to another drive
		}
		return filepath.ToSlash(path)
	}
	var b bytes.Buffer
	if err := report.Summary(&b, sets, picture); err != nil {
		f.Err = err
		return
	}
	whole, err := replaceBetween(page, b.Bytes())
	if err != nil {
		f.Err = exit.Usage(errors.Join(fmt.Errorf("-insert %s", name), err))
		return
	}
	f.add("-insert", name, func(w io.Writer) error {
		_, err := w.Write(whole)
		return err
	})
}

func figureFile(dir string, set int, f report.Figure) string {
	return filepath.Join(dir, fmt.Sprintf("%d-%s.svg", set+1, f.Name))
}
