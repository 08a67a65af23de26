package record

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Table writes a short table for people: the medians of the valid records of each
// combination, with the strategies of one combination below each other and their
// speed relative to the first of them. Without records it writes nothing.
func Table(w io.Writer, records []Record) error {
	if len(records) == 0 {
		return nil
	}
	rows := rows(records)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "recipe\tworkload\tvia\tcontenders\tstrategy\truns\ttime/op\tspeed\thandoffs/s\thandoff p50\tp99\treads/op\twrites/op\tevents/op\tbytes/op\tMB rss\t")
	var baseline row
	for i, r := range rows {
		if i == 0 || !r.sameButStrategy(baseline) {
			baseline = r
		}
		r.write(tw, baseline)
	}
	return tw.Flush()
}

// row is the records of one combination.
type row struct {
	Record
	runs []Record // that are valid
}

// rows groups records by combination and sorts them.
func rows(records []Record) []row {
	byName := map[string]*row{}
	var all []*row
	for _, r := range records {
		if byName[r.Name()] == nil {
			byName[r.Name()] = &row{Record: r}
			all = append(all, byName[r.Name()])
		}
		if r.Valid() {
			byName[r.Name()].runs = append(byName[r.Name()].runs, r)
		}
	}
	slices.SortStableFunc(all, func(a, b *row) int {
		return cmp.Or(
			cmp.Compare(a.Recipe, b.Recipe), cmp.Compare(a.Workload, b.Workload),
			cmp.Compare(a.Hold, b.Hold), cmp.Compare(a.Transport, b.Transport),
			cmp.Compare(a.Contenders, b.Contenders),
			cmp.Compare(slices.Index(recipes.Strategies(), a.Strategy), slices.Index(recipes.Strategies(), b.Strategy)),
		)
	})
	sorted := make([]row, len(all))
	for i, r := range all {
		sorted[i] = *r
	}
	return sorted
}

func (r row) sameButStrategy(other row) bool {
	a, b := r.Record, other.Record
	a.Strategy, b.Strategy = "", ""
	return a.Name() == b.Name()
}

// median returns the median of a unit over the row's records.
func (r row) median(unit string) (float64, bool) {
	var values []float64
	for _, run := range r.runs {
		if v, ok := metric(run.Metrics(), unit); ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2, true
}

func (r row) write(w io.Writer, baseline row) {
	cell := func(unit string, format func(float64) string) string {
		if v, ok := r.median(unit); ok {
			return format(v)
		}
		return "-"
	}
	speed := "-"
	if mine, ok := r.median(UnitTime); ok && mine > 0 {
		if base, ok := baseline.median(UnitTime); ok {
			speed = fmt.Sprintf("%.2fx", base/mine)
		}
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n",
		r.Recipe, r.Workload, r.Transport, r.Contenders, r.Strategy, len(r.runs),
		cell(UnitTime, duration), speed, cell(UnitHandoffs, count),
		cell(UnitHandoffP50, duration), cell(UnitHandoffP99, duration),
		cell(UnitReads, count), cell(UnitWrites, count), cell(UnitEvents, count),
		cell(UnitBytes, count), cell(UnitRSS, count))
}

// duration writes nanoseconds with three digits.
func duration(ns float64) string {
	d := time.Duration(ns)
	for unit := time.Second; unit > time.Nanosecond; unit /= 1000 {
		switch {
		case d >= 100*unit:
			return d.Round(unit).String()
		case d >= 10*unit:
			return d.Round(unit / 10).String()
		case d >= unit:
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// count writes a number with three digits, or all before the point.
func count(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
