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
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

// Side is the results of one side of a comparison.
type Side struct {
	Name   string
	values map[key][]float64
	order  []key
	units  benchfmt.UnitMetadataMap
	config map[string]map[string]bool // values of the environment, by key
	counts bool                       // of ReadCounts

	// Invalid is how many results were left out because they are marked as invalid. Broken
	// has the lines that look like results but cannot be parsed.
	Invalid int
	Broken  []error
}

// key is one unit of one benchmark. The only part of the environment in it is the package, because
// users compare results of two environments. Results of two environments on one side cause a
// warning.
type key struct{ pkg, benchmark, unit string }

// ErrNoResults is returned for a file without results.
var ErrNoResults = errors.New("it contains no results: neither Go benchmark lines nor zkbench records")

// Read reads results from r: records of zkbench as JSON lines, or the Go benchmark format
// of any program. It keeps the results that match filter; a nil filter matches all.
func Read(r io.Reader, name string, filter *benchproc.Filter) (*Side, error) {
	side := newSide(name)
	return side, side.read(r, filter)
}

func newSide(name string) *Side {
	return &Side{Name: name, values: map[key][]float64{}, config: map[string]map[string]bool{}}
}

func (s *Side) read(r io.Reader, filter *benchproc.Filter) error {
	lines := bufio.NewReader(r)
	if first, _ := lines.Peek(1); len(first) == 1 && first[0] == '{' {
		runs, err := record.Read(lines)
		var text io.Reader
		if err == nil {
			text, err = benchmarksOf(runs)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		return s.readText(text, filter)
	}
	return s.readText(lines, filter)
}

// benchmarksOf renders records in the benchmark format, so that Read handles both kinds of
// file alike.
func benchmarksOf(runs []record.Run) (io.Reader, error) {
	var text bytes.Buffer
	for _, run := range runs {
		w := &record.Writer{Output: &text, Environment: run.Environment}
		for _, r := range run.Records {
			if err := w.Write(r); err != nil {
				return nil, err
			}
		}
	}
	return &text, nil
}

func (s *Side) readText(r io.Reader, filter *benchproc.Filter) error {
	reader := benchfmt.NewReader(r, s.Name)
	for reader.Scan() {
		switch result := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			s.Broken = append(s.Broken, result)
		case *benchfmt.Result:
			s.add(result, filter)
		}
	}
	if err := reader.Err(); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	if len(s.values) == 0 && s.Invalid == 0 {
		return fmt.Errorf("%s: %w", s.Name, errors.Join(append([]error{ErrNoResults}, s.Broken...)...))
	}
	s.units = reader.Units()
	return nil
}

func (s *Side) has(benchmark string) bool {
	return slices.ContainsFunc(s.order, func(k key) bool { return k.benchmark == benchmark })
}

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
	if r.GetConfig(unit.Invalid) != "" && !s.counts {
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
	pkg, name := r.GetConfig("pkg"), r.Name.String()
	if s.counts {
		pkg, name = "", withoutProcs(r.Name)
	}
	for _, v := range r.Values {
		k := key{pkg, name, v.Unit}
		if s.values[k] == nil {
			s.order = append(s.order, k)
		}
		s.values[k] = append(s.values[k], v.Value)
	}
}
