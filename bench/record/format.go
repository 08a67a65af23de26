package record

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/perf/benchfmt"

	"github.com/zkrecipes/zkrecipes/internal/histogram"
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

// version is the version of the record format. Read refuses others, because it cannot know
// what their figures mean.
const version = 1

// Run is the records of one run, with its environment.
type Run struct {
	Environment Environment
	Records     []Record
}

type header struct {
	Zkbench     int         `json:"zkbench"` // version
	Environment Environment `json:"environment"`
}

type figures Record

// line is one record as it is written. Histograms are in HdrHistogram's compressed form,
// because package json would write all their counts.
type line struct {
	figures
	Histograms map[string]string `json:"histograms,omitempty"`
}

// JSONWriter writes records as JSON lines: a header with the environment, then one line for
// each record, from which every report can be made again. Each call writes whole lines.
// Files may be concatenated.
type JSONWriter struct {
	Output      io.Writer
	Environment Environment // of all records

	started bool
}

// Write writes a record.
func (w *JSONWriter) Write(r Record) error {
	if !w.started {
		if err := w.line(header{version, w.Environment}); err != nil {
			return err
		}
		w.started = true
	}
	return w.line(r)
}

// MarshalJSON returns the record in JSON, with its histograms.
func (r Record) MarshalJSON() ([]byte, error) {
	l := line{figures: figures(r), Histograms: map[string]string{}}
	for name, h := range r.histograms() {
		if *h == nil || (*h).TotalCount() == 0 {
			continue
		}
		text, err := (*h).Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			return nil, fmt.Errorf("record of %s: histogram %s: %w", r.Name(), name, err)
		}
		l.Histograms[name] = string(text)
	}
	return json.Marshal(l)
}

func (w *JSONWriter) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	if _, err := w.Output.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

func (r *Record) histograms() map[string]**hdrhistogram.Histogram {
	return map[string]**hdrhistogram.Histogram{
		"wait": &r.Wait, "handoff": &r.Handoff, "service": &r.Service, "late": &r.Late,
	}
}

// ErrNoRecords is returned for a file without a record.
var ErrNoRecords = errors.New("it contains no records; was it written by zkbench run -record, and did a trial end?")

// Read reads the runs of a file of JSON lines. An error in a line names it. The error is
// [ErrNoRecords] if there is no record. On error the result is nil.
func Read(r io.Reader) ([]Run, error) {
	lines := bufio.NewReader(r)
	var runs []Run
	for number := 1; ; number++ {
		text, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(text) > 0 {
			if err := readLine(text, &runs); err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
		}
		if err != nil {
			break
		}
	}
	records := 0
	for _, run := range runs {
		records += len(run.Records)
	}
	if records == 0 {
		return nil, ErrNoRecords
	}
	return runs, nil
}

func readLine(text []byte, runs *[]Run) error {
	var either struct {
		header
		line
	}
	err := json.Unmarshal(text, &either)
	switch {
	case err != nil:
		return fmt.Errorf("not a record (is the file cut short, or not JSON lines?): %w", err)
	case either.Zkbench > 0 && either.Zkbench != version:
		return fmt.Errorf("record format %d; this zkbench reads %d", either.Zkbench, version)
	case either.Zkbench > 0:
		*runs = append(*runs, Run{Environment: either.Environment})
		return nil
	case len(*runs) == 0:
		return errors.New(`no {"zkbench":...} line before the first record`)
	}
	run := &(*runs)[len(*runs)-1]
	record, err := either.record()
	run.Records = append(run.Records, record)
	return err
}

// UnmarshalJSON is the reverse of MarshalJSON. It fails if text is not a record of a trial.
func (r *Record) UnmarshalJSON(text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("not a record: %w", err)
	}
	var err error
	*r, err = l.record()
	return err
}

func (l line) record() (Record, error) {
	r := Record(l.figures)
	if r.Recipe == "" || r.Workload == "" || r.Contenders < 1 || r.Operations < 1 || r.Elapsed < 0 {
		return r, errors.New("not a record: recipe, workload, contenders or operations are missing")
	}
	for name, h := range r.histograms() {
		text := l.Histograms[name]
		if text == "" {
			*h = histogram.New()
			continue
		}
		// The decoder may panic on broken base64.
		_, err := base64.StdEncoding.DecodeString(text)
		if err == nil {
			*h, err = hdrhistogram.Decode([]byte(text))
		}
		if err != nil {
			return r, fmt.Errorf("histogram %s: %w", name, err)
		}
	}
	return r, nil
}

// Writer writes records in the Go benchmark format: the units and the environment once,
// then a line for each record. The output is complete after every call.
type Writer struct {
	Output      io.Writer
	Environment Environment // of all records

	w *benchfmt.Writer // to Output; nil before the first record
}

// Write writes a record. A configuration line applies to all results below it, even in a
// file that is appended. So the mark of an invalid result is cleared right after it.
func (w *Writer) Write(r Record) error {
	if w.w == nil {
		out := benchfmt.NewWriter(w.Output)
		if err := writeUnits(out); err != nil {
			return err
		}
		w.w = out
	}
	result := &benchfmt.Result{
		Config: w.Environment.config(), Name: benchfmt.Name(r.Name()), Iters: int(r.Operations), Values: r.Metrics(),
	}
	err := w.mark(r, strings.Join(r.Invalid, "; "))
	if err == nil {
		err = w.w.Write(result)
	}
	if err == nil {
		err = w.mark(r, "")
	}
	if err != nil {
		return fmt.Errorf("write result of %s: %w", r.Name(), err)
	}
	return nil
}

// mark writes, for an invalid record, the configuration line that marks the results below
// it as invalid for the reason why. An empty reason clears the mark.
func (w *Writer) mark(r Record, why string) error {
	if r.Valid() {
		return nil
	}
	_, err := fmt.Fprintf(w.Output, "\n%s\n\n", strings.TrimSpace(unit.Invalid+": "+why))
	return err
}

func writeUnits(w *benchfmt.Writer) error {
	for _, u := range directed {
		better := "lower"
		if slices.Contains(higher, u) {
			better = "higher"
		}
		err := w.Write(&benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: u, Key: "better"}, OrigUnit: u, Value: better})
		if err != nil {
			return fmt.Errorf("write unit %s: %w", u, err)
		}
	}
	return nil
}
