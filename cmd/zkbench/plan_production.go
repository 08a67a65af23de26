package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/servers"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/table"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/traffic"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

// productionFlags are the flags of plan for traffic of a production system.
type productionFlags struct {
	audit, path string
	mntr        []string
	growth      float64
}

func (p *productionFlags) add(f *flag.FlagSet) {
	f.StringVar(&p.audit, "from-audit", "", helptext.Common("plan from this `file` of zkrecipes audit -holds -format=json, instead of records"))
	f.StringVar(&p.path, "path", "/", "of -from-audit: lines at and below this `path`, as the servers see it")
	f.Float64Var(&p.growth, "growth", 1, "of -from-audit: predict waits for this many `times` the arrivals")
	f.Func("from-mntr", "of -from-audit: this `file` and those after the flags are replies to mntr", func(file string) error {
		p.mntr = append(p.mntr, file)
		return nil
	})
}

// check returns an error if the flags contradict each other. files are the arguments after them.
func (p *productionFlags) check(given map[string]bool, files []string) error {
	for _, name := range []string{"path", "growth", "from-mntr"} {
		if given[name] && p.audit == "" {
			return fmt.Errorf("-%s needs -from-audit", name)
		}
	}
	if p.audit == "" {
		return nil
	}
	for _, name := range []string{"at", "p99", "hold", "factor", "line-rate", "rtt", "choose", "watches", "servers", "max-listing", "max-client-cnxns", "descriptors", "network"} {
		if given[name] {
			return fmt.Errorf("-%s asks records of trials; it cannot be combined with -from-audit", name)
		}
	}
	switch {
	case !(p.growth > 0):
		return fmt.Errorf("-growth %v: more than 0", p.growth)
	case len(files) > 0 && len(p.mntr) == 0:
		return fmt.Errorf("%q: -from-audit reads no records; give replies to mntr with -from-mntr, as the last flag", files[0])
	}
	p.mntr = append(p.mntr, files...)
	return nil
}

// inName is the time in the name of a sample, as date -u +%Y%m%dT%H%M%SZ writes it.
var inName = regexp.MustCompile(`[-_.]?(\d{8}T\d{6}Z)`)

// readSamples reads replies to mntr. The name of a file has the server and the time. Without a time,
// that of the file's last change counts, and the folder is the server. An error comes from exit.Usage.
func readSamples(files []string) (all []traffic.Sample, err error) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, exit.Usage(err)
		}
		s := traffic.Sample{Figures: servers.ParseMntr(string(text))}
		if _, ok := s.Figures["packets_received"]; !ok || !strings.Contains(string(text), "zk_packets_received\t") {
			return nil, exit.Usage(fmt.Errorf("%s: it is no reply to mntr: it has no zk_packets_received; servers reply if 4lw.commands.whitelist contains mntr", file))
		}
		dir, name := filepath.Split(file)
		if at := inName.FindStringSubmatchIndex(name); at != nil {
			s.Server = dir + name[:at[0]]
			if s.Time, err = time.Parse("20060102T150405Z", name[at[2]:at[3]]); err != nil {
				return nil, exit.Usage(fmt.Errorf("%s: its name has no time: %w", file, err))
			}
		} else {
			info, err := os.Stat(file)
			if err != nil {
				return nil, exit.Usage(err)
			}
			s.Server, s.Time = filepath.Clean(dir), info.ModTime()
		}
		all = append(all, s)
	}
	return all, nil
}

// mostPaths is how many paths get a forecast, those in use for most of the time first.
const mostPaths = 50

func (c command) planProduction(p productionFlags, seed uint64) error {
	l, err := readAudit(p.audit, p.path)
	if err != nil {
		return err
	}
	samples, err := readSamples(p.mntr)
	if err != nil {
		return err
	}
	var out strings.Builder
	answered := p.writePaths(&out, l, seed)
	if len(samples) > 0 {
		answered = loads(&out, l, samples) && answered
	}
	return c.answer(out.String(), codeOf(answered))
}

func (p productionFlags) writePaths(w io.Writer, l *traffic.Log, seed uint64) bool {
	split, part := l.Split()
	all := 0
	for _, path := range l.Paths {
		all += len(path.Acquisitions)
	}
	fmt.Fprintf(w, "production: %s of %s from %s to %s; held out: %s\n", english.Count(all, "acquisition"), english.Count(len(l.Paths), "path"), l.From.UTC().Format(time.RFC3339), l.To.UTC().Format(time.RFC3339), part)
	for _, gap := range l.Gaps {
		fmt.Fprintf(w, "incomplete: %s\n", gap)
	}
	for _, strange := range l.Strange {
		fmt.Fprintf(w, "left out: %s\n", strange)
	}
	held := func(path *traffic.Path) (sum time.Duration) {
		for _, a := range path.Acquisitions {
			sum += a.Hold
		}
		return sum / time.Duration(path.Permits)
	}
	busiest := slices.Clone(l.Paths)
	slices.SortStableFunc(busiest, func(a, b *traffic.Path) int { return cmp.Compare(held(b), held(a)) })
	answered := 0
	for i, path := range busiest[:min(len(busiest), mostPaths)] {
		if i == 0 {
			fmt.Fprintln(w)
		}
		f, err := path.Predict(l, split, p.growth, seed)
		if err != nil {
			fmt.Fprintf(w, "%s, %s: refused: %v\n", path.Name, path.Kind, err)
			continue
		}
		answered++
		p.describe(w, path, f)
	}
	if more := len(busiest) - mostPaths; more > 0 {
		fmt.Fprintf(w, "held for less of the time: %s; -path selects others\n", english.Count(more, "more path"))
	}
	return answered == min(len(busiest), mostPaths) && answered > 0
}

func (p productionFlags) describe(w io.Writer, path *traffic.Path, f traffic.Forecast) {
	times := ""
	if p.growth != 1 {
		times = fmt.Sprintf(" with %g times the arrivals", p.growth)
	}
	ns := unit.Nanoseconds
	between := func(e plan.Estimate) string { return ns(e.Lo) + " to " + ns(e.Hi) }
	fmt.Fprintf(w, "%s, %s: held %.0f%% of the time, saturated at %.3g times the arrivals; an acquisition waits %s in the median and %s at p99%s\n",
		path.Name, path.Kind, 100*f.Used, f.Growth, ns(f.Waits.P50.Value), ns(f.Waits.P99.Value), times)
	fmt.Fprintf(w, "  %s, %.3g a second, held for %s in the mean", english.Count(len(path.Acquisitions), "acquisition"), f.Rate, f.Hold.Round(100*time.Microsecond))
	if path.Permits > 1 {
		fmt.Fprint(w, ", "+english.Count(path.Permits, "permit"))
	}
	if path.Cut > 0 {
		fmt.Fprintf(w, "; %d more at the ends of the log do not count", path.Cut)
	}
	fmt.Fprintln(w)
	rows := [][]string{{"  wait" + times, "expected", "95% interval", fmt.Sprintf("held out (%d): predicted", f.HeldOut), "95% interval", "measured", "error"}}
	for _, r := range []struct {
		name                          string
		expected, predicted, measured plan.Estimate
	}{
		{"p50", f.Waits.P50, f.Predicted.P50, f.Measured.P50}, {"p99", f.Waits.P99, f.Predicted.P99, f.Measured.P99}, {"mean", f.Waits.Mean, f.Predicted.Mean, f.Measured.Mean},
	} {
		off := "-" // of a measured wait of zero
		if r.measured.Value > 0 {
			off = fmt.Sprintf("%+.0f%%", 100*(r.predicted.Value/r.measured.Value-1))
		}
		rows = append(rows, []string{"    " + r.name, ns(r.expected.Value), between(r.expected), ns(r.predicted.Value), between(r.predicted), ns(r.measured.Value), off})
	}
	fmt.Fprintln(w, table.Align(rows, 1))
}

// writesEach is how many transactions an acquisition has: the creation and the deletion of a znode.
const writesEach = 2

// loads answers how much more the servers carry. It reports whether there was an answer.
func loads(w io.Writer, l *traffic.Log, samples []traffic.Sample) bool {
	all, err := l.Loads(samples)
	if err != nil {
		fmt.Fprintf(w, "servers: refused: %v\n", err)
		return false
	}
	for _, s := range all {
		fmt.Fprintf(w, "server %s: %.4g requests a second and %s, by %s in %v", s.Server, s.Packets, english.Count(s.Connections, "connection"), english.Count(s.Samples, "sample"), s.To.Sub(s.From))
		if s.Most > 0 {
			fmt.Fprintf(w, "; it syncs its log %.0f%% to %.0f%% of the time", 100*s.Least, 100*s.Most)
		}
		fmt.Fprintln(w)
	}
	answered := true
	acquisitions, took := 0, l.To.Sub(l.From).Seconds()
	for _, p := range l.Paths {
		acquisitions += len(p.Acquisitions)
	}
	transactions := float64(l.Transactions) / took
	switch s := all[0]; {
	case slices.ContainsFunc(all, func(l traffic.Load) bool { return l.Most == 0 }):
		fmt.Fprintln(w, "more paths: refused: a server's mntr has no growing zk_cnt_fsynctime (3.6 and later have it), so it is not known how busy its disk is")
		answered = false
	case acquisitions == 0:
		fmt.Fprintln(w, "more paths: refused: no acquisition is in the log")
		answered = false
	case s.Most >= carried:
		fmt.Fprintf(w, "more paths: none: %s may sync its log %.0f%% of the time already, and the limit is %.0f%%\n", s.Server, 100*s.Most, 100*carried)
	default:
		each := writesEach * float64(acquisitions) / took / float64(len(l.Paths))
		more := transactions * (carried/s.Most - 1)
		fmt.Fprintf(w, "more paths: at least %d like the mean of these, until %s syncs its log %.0f%% of the time; %.4g transactions a second may become %.4g\n",
			int(more/each), s.Server, 100*carried, transactions, transactions+more)
	}
	free, fullest := -1, traffic.Load{}
	for _, s := range all {
		if n := max(0, s.Files-s.Open); s.Files > 0 && (free < 0 || n < free) {
			free, fullest = n, s
		}
	}
	if free >= 0 {
		fmt.Fprintf(w, "more contenders: %s on %s, by its open files (%d of %d)\n", english.Count(free, "session"), fullest.Server, fullest.Open, fullest.Files)
	}
	return answered
}
