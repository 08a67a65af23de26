package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"golang.org/x/perf/benchproc"
	"golang.org/x/perf/benchunit"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/compare"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
)

const compareHelp = `Usage: zkbench compare [flags] OLD NEW

Lists what became better or worse from OLD to NEW. Each is a file from zkbench run (-record
or -out) or from go test -bench.

Examples:

	zkbench run -record old.jsonl && (upgrade) && zkbench run -record new.jsonl
	zkbench compare old.jsonl new.jsonl
	zkbench compare -unit ns/op -filter '/contenders:100' old.jsonl new.jsonl

	# Does a strategy send more requests than before? For a build server of any speed.
	zkbench run -strategy predecessor,handoff -count 1 -record new.jsonl
	zkbench compare -exact old.jsonl new.jsonl

Rules:

	Compared   Each unit of each benchmark that both files have: medians with
	           confidence intervals, and the Mann-Whitney U test.
	Change     A change counts if it is significant after Holm's correction for the
	           number of comparisons, and at least as large as -effect.
	Direction  The Unit lines of the files say whether lower or higher is better.
	           For ns/op, B/op and the like it is known.
	Timelines  Of zkbench run -timeline, medians are compared, such as the longest time
	           without a grant, if the faults are equal. The seconds are not.
	Invalid    Results that are marked as invalid are left out.
	Gate       To gate a build by times, run old and new in turns, ten times each or
	           more, on one quiet machine. A single file of each is not enough.
	Exact      -exact compares only counts: reads, writes, syncs, watch events, bytes
	           and fallbacks of a handoff. Counts are the same on every machine, so
	           one trial is enough. Any growth is worse, and so is a benchmark that
	           NEW does not have. Use it with -workload drain: there counts do not
	           depend on timing, except those of a herd of three or more.

Exit codes:

	0    nothing became worse
	1    something became worse
	2    the flags or the files cannot be used
	3    some comparisons have too few trials, and nothing was found to be worse`

func (c command) compareVerb(_ context.Context, args []string) error {
	o := compare.DefaultOptions()
	f := flag.NewFlagSet("zkbench compare", flag.ContinueOnError)
	f.Float64Var(&o.Alpha, "alpha", o.Alpha, "bound on the probability of any false alarm")
	f.Float64Var(&o.Confidence, "confidence", o.Confidence, "level of the intervals of medians")
	f.Float64Var(&o.Effect, "effect", o.Effect, "smallest change that counts, as a share: 0.05 is 5 %")
	units := f.String("unit", "", helptext.Common("`list` of units to compare, such as ns/op; empty for all"))
	exact := f.Bool("exact", false, helptext.Common("compare counts without statistics"))
	query := f.String("filter", "*", helptext.Common("compare only benchmarks that match this benchstat `query`"))
	if err := c.parse(f, compareHelp, args); err != nil {
		return err
	}
	switch {
	case f.NArg() != 2:
		return exit.Usage(fmt.Errorf("compare takes two files, old and new; there are %d", f.NArg()))
	case !(o.Alpha > 0 && o.Alpha < 1) || !(o.Confidence > 0 && o.Confidence < 1) || !(o.Effect >= 0):
		return exit.Usage(fmt.Errorf("-alpha and -confidence lie between 0 and 1, and -effect is not negative"))
	}
	if *exact {
		for _, name := range []string{"alpha", "confidence", "effect"} {
			if given(f)[name] {
				return exit.Usage(fmt.Errorf("-%s is for statistics, and cannot be combined with -exact", name))
			}
		}
	}
	filter, err := benchproc.NewFilter(*query)
	if err != nil {
		return exit.Usage(fmt.Errorf("-filter: %w", err))
	}
	if *units != "" {
		for unit := range strings.SplitSeq(*units, ",") {
			_, tidy := benchunit.Tidy(1, strings.TrimSpace(unit))
			o.Units = append(o.Units, tidy)
		}
	}
	read, compared := compare.Read, compare.Compare
	if *exact {
		read, compared = compare.ReadCounts, compare.Counts
	}
	var sides [2]*compare.Side
	for i, name := range f.Args() {
		file, err := os.Open(name)
		if err != nil {
			return exit.Usage(err)
		}
		defer file.Close()
		if sides[i], err = read(file, name, filter); err != nil {
			return exit.Usage(err)
		}
	}
	result, err := compared(sides[0], sides[1], o)
	if err != nil {
		return exit.Usage(err)
	}
	if err := c.writeComparison(result); err != nil || result.TooFew == 0 {
		return err
	}
	return exit.Answer(exit.TooFew)
}

func (c command) writeComparison(result compare.Result) error {
	if err := result.Write(c.stdout); err != nil {
		return err
	}
	if result.Worse > 0 {
		return exit.Answer(exit.Failed)
	}
	return nil
}
