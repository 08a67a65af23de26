package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/servers"
	"github.com/zkrecipes/zkrecipes/internal/english"
)

// history decides which trials are left out: those in a file that the run continues, and
// those that would take too long.
type history struct {
	runs     []record.Run
	have     map[string]int  // valid records of the file, by name
	failed   map[string]int  // trials of each combination that has no valid one, by name
	reported map[string]bool // combinations that were reported as left out
	ceiling  ceiling
}

func newHistory(runs []record.Run, env record.Environment, limit time.Duration) (*history, error) {
	p := &history{runs: runs, have: map[string]int{}, failed: map[string]int{}, reported: map[string]bool{}, ceiling: ceiling{limit: limit}}
	for _, run := range runs {
		if err := sameServers(run.Environment, env); err != nil {
			return nil, err
		}
		for _, r := range run.Records {
			if r.Valid() {
				p.have[r.Name()]++
				p.ceiling.add(r)
			} else {
				p.failed[r.Name()]++
			}
		}
	}
	for name := range p.have {
		delete(p.failed, name)
	}
	return p, nil
}

// sameServers returns exit.Usage if the file to continue was recorded on other servers, or with
// other settings of these servers.
func sameServers(was, now record.Environment) error {
	if was.Server != now.Server {
		return exit.Usage(fmt.Errorf("-resume: the file was recorded on %s, and this is %s; give another -record",
			report.Servers(was.Server), report.Servers(now.Server)))
	}
	if name, before, after := servers.Changed(was.Details, now.Details); name != "" {
		return exit.Usage(fmt.Errorf("-resume: the file was recorded on servers with %s %s, and these have %[1]s %[3]s; restore the setting, or give another -record",
			name, before, after))
	}
	return nil
}

func (p *history) recorded() (all []record.Record) {
	for _, run := range p.runs {
		all = append(all, run.Records...)
	}
	return all
}

// mostFailed is how many trials of a combination are tried if none of them is valid, because
// this machine cannot measure it. Without it, each continued run would repeat them all.
const mostFailed = 3

// skip reports whether to leave out a trial. For a combination that is left out, why is the
// reason, once.
func (p *history) skip(r record.Record) (yes bool, why string) {
	if p.have[r.Name()] > 0 {
		p.have[r.Name()]--
		return true, ""
	}
	if n := p.failed[r.Name()]; n >= mostFailed {
		why = fmt.Sprintf("%s: none of %s in the file is valid", r.Name(), english.Count(n, "trial"))
	} else if expected, tooLong := p.ceiling.tooLong(r); tooLong {
		why = fmt.Sprintf("%s: a trial would take about %v (-limit %v)", r.Name(), expected.Round(max(1, expected/100)), p.ceiling.limit)
	} else {
		return false, ""
	}
	if p.reported[r.Name()] {
		why = ""
	}
	p.reported[r.Name()] = true
	return true, why
}

// sameTrials returns exit.Usage if the file to continue was recorded with other flags,
// because its trials would look like further samples of the new ones. Flags that are part of
// a record's name may differ: those trials have other names.
func (s settings) sameTrials(former []record.Run) error {
	for _, run := range former {
		for _, name := range conditions {
			was, now := run.Environment.Details[name], s.condition(name)
			if was != "" && was != now { // an older version has recorded none
				return exit.Usage(fmt.Errorf("-resume: the file was recorded with %s %v, and this is %[1]s %[3]v; give the same, or another -record",
					name, was, now))
			}
		}
	}
	return nil
}

// conditions are the flags that change trials without changing their names. The environment of
// the records has their values.
var conditions = []string{"-duration", "-warmup", "-session-timeout", "-rounds", "-servers"}

func (s settings) condition(name string) string {
	return cmp.Or(s.set.Lookup(name[1:]).Value.String(), "none")
}

// ceiling estimates which trials would take too long, from trials with fewer contenders. Only
// the measured part counts.
type ceiling struct {
	limit  time.Duration // 0 means no limit
	trials []record.Record
}

func (c *ceiling) add(r record.Record) { c.trials = append(c.trials, r) }

func (c *ceiling) fastestTrials(of record.Record) map[int]time.Duration {
	fastest := map[int]time.Duration{}
	for _, r := range c.trials {
		of.Contenders = r.Contenders
		if was, ok := fastest[r.Contenders]; r.Name() == of.Name() && (!ok || r.Elapsed < was) {
			fastest[r.Contenders] = r.Elapsed
		}
	}
	return fastest
}

// tooLong returns how long a trial is expected to take, and whether that is longer than the
// limit. The expected time is that of the fastest such trial, if there was one. Otherwise it
// follows from the two largest lines below it, by the power law through them, with a power
// from one to three. The time of a herd of n grows with the cube of n: it makes n handoffs, each
// with n listings of n names. Workloads that run for a given time, and failovers, need not grow:
// their power is at least zero. A trial with an unknown time is not too long.
func (c *ceiling) tooLong(r record.Record) (expected time.Duration, yes bool) {
	took := c.fastestTrials(r)
	expected, ok := took[r.Contenders]
	if !ok {
		expected = extrapolate(took, r.Contenders, leastPower(r.Workload))
	}
	return expected, c.limit > 0 && expected > c.limit
}

// leastPower is the smallest power of the number of contenders by which the time of a trial
// grows.
func leastPower(w load.Workload) float64 {
	switch w {
	case load.Cycle, load.Open, load.Many, load.Failover:
		return 0
	}
	return 1
}

func extrapolate(took map[int]time.Duration, n int, least float64) time.Duration {
	var below []int
	for level := range took {
		if level > 1 && level < n { // a single contender is another experiment
			below = append(below, level)
		}
	}
	if len(below) == 0 {
		return 0
	}
	slices.Sort(below)
	last := below[len(below)-1]
	power := least
	if len(below) > 1 {
		before := below[len(below)-2]
		power = math.Log(float64(took[last])/float64(took[before])) / math.Log(float64(last)/float64(before))
	}
	if math.IsNaN(power) {
		power = least
	}
	power = min(max(power, least), 3)
	return time.Duration(float64(took[last]) * math.Pow(float64(n)/float64(last), power))
}
