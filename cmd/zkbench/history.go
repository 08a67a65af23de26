package main

import (
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/ceiling"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/report"
)

// history is what a run knows before a trial: what a file that it continues has, and
// how long others took.
type history struct {
	runs    []record.Run
	have    map[string]int  // valid records of the file, by name
	vain    map[string]int  // trials of combinations of which none was valid
	told    map[string]bool // of combinations that are left out
	ceiling ceiling.Ceiling
}

// newHistory returns the history of a run on that server. An error is a usageError: the
// file is of another server.
func newHistory(runs []record.Run, about record.Server, limit time.Duration) (*history, error) {
	p := &history{runs: runs, have: map[string]int{}, vain: map[string]int{}, told: map[string]bool{}, ceiling: ceiling.Ceiling{Limit: limit}}
	for _, run := range runs {
		if run.Environment.Server != about {
			return nil, usageError{fmt.Errorf("-resume: the file is of %s, and this is %s; give another -record",
				report.Servers(run.Environment.Server), report.Servers(about))}
		}
		for _, r := range run.Records {
			if r.Valid() {
				p.have[r.Name()]++
				p.ceiling.Add(r)
			} else {
				p.vain[r.Name()]++
			}
		}
	}
	for name := range p.have {
		delete(p.vain, name)
	}
	return p, nil
}

// records are those of the file.
func (p *history) records() (all []record.Record) {
	for _, run := range p.runs {
		all = append(all, run.Records...)
	}
	return all
}

// mostVain is of how many trials none was valid where no other is tried: this machine
// cannot measure that. A run that is continued ten times would make them ten times.
const mostVain = 3

// skip reports whether a trial need not be made, and, once for each combination
// that is left out, why.
func (p *history) skip(r record.Record) (yes bool, why string) {
	if p.have[r.Name()] > 0 {
		p.have[r.Name()]--
		return true, ""
	}
	if n := p.vain[r.Name()]; n >= mostVain {
		if !p.told[r.Name()] {
			p.told[r.Name()] = true
			why = fmt.Sprintf("%s: none of %d trials in the file is valid", r.Name(), n)
		}
		return true, why
	}
	expected, tooLong := p.ceiling.TooLong(r)
	if !tooLong {
		return false, ""
	}
	if !p.told[r.Name()] {
		p.told[r.Name()] = true
		why = fmt.Sprintf("%s: a trial would take about %v (-limit %v)", r.Name(), expected.Round(max(1, expected/100)), p.ceiling.Limit)
	}
	return true, why
}
