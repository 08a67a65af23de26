package compare

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// Side is the results of one side of a comparison.
type Side struct {
	Name   string
	values map[key][]float64
	order  []key
	units  benchfmt.UnitMetadataMap
	config map[string]map[string]bool // values of the environment, by key

	// Invalid is how many results were left out because they were marked as
	// invalid, and Broken the lines that are no results though they look so.
	Invalid int
	Broken  []error
}

// key is what is compared: a unit of a benchmark. Package is a part of it, the
// rest of the environment is not: to compare two of them is a reason to compare. That
// one side has two is warned of.
type key struct{ pkg, benchmark, unit string }

// ErrNoResults is returned for a file without results.
var ErrNoResults = errors.New("no results in it: neither Go benchmark lines nor zkbench records")

// Read reads results from r: records of zkbench as JSON lines, or the Go
// benchmark format of whatever program. Only what filter matches is kept; a nil
// filter matches everything.
func Read(r io.Reader, name string, filter *benchproc.Filter) (*Side, error) {
	lines := bufio.NewReader(r)
	if first, _ := lines.Peek(1); len(first) == 1 && first[0] == '{' {
		text, err := asBenchmarks(lines)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return read(text, name, filter)
	}
	return read(lines, name, filter)
}

// asBenchmarks renders records in the benchmark format, so that both kinds of
// file are compared alike.
func asBenchmarks(r io.Reader) (io.Reader, error) {
	runs, err := record.Read(r)
	if err != nil {
		return nil, err
	}
	return benchmarksOf(runs)
}

func benchmarksOf(runs []record.Run) (io.Reader, error) {
	var text bytes.Buffer
	for _, run := range runs {
		w := record.NewWriter(&text, run.Environment)
		for _, r := range run.Records {
			if err := w.Write(r); err != nil {
				return nil, err
			}
		}
	}
	return &text, nil
}

func read(r io.Reader, name string, filter *benchproc.Filter) (*Side, error) {
	side := &Side{Name: name, values: map[key][]float64{}, config: map[string]map[string]bool{}}
	reader := benchfmt.NewReader(r, name)
	for reader.Scan() {
		switch result := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			side.Broken = append(side.Broken, result)
		case *benchfmt.Result:
			side.add(result, filter)
		}
	}
	if err := reader.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(side.values) == 0 && side.Invalid == 0 {
		return nil, fmt.Errorf("%s: %w", name, errors.Join(append([]error{ErrNoResults}, side.Broken...)...))
	}
	side.units = reader.Units()
	return side, nil
}

// mixed returns the keys of the environment that not all results have the same value of.
func (s *Side) mixed() (keys []string) {
	for key, values := range s.config {
		if len(values) > 1 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (s *Side) add(r *benchfmt.Result, filter *benchproc.Filter) {
	if filter != nil {
		if ok, _ := filter.Apply(r); !ok {
			return
		}
	}
	if r.GetConfig(unit.Invalid) != "" {
		s.Invalid++
		return
	}
	for _, c := range r.Config {
		if c.Key != "pkg" && c.File {
			if s.config[c.Key] == nil {
				s.config[c.Key] = map[string]bool{}
			}
			s.config[c.Key][string(c.Value)] = true
		}
	}
	for _, v := range r.Values {
		k := key{r.GetConfig("pkg"), r.Name.String(), v.Unit}
		if s.values[k] == nil {
			s.order = append(s.order, k)
		}
		s.values[k] = append(s.values[k], v.Value)
	}
}
