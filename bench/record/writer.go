package record

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// Writer writes records in the Go benchmark format: the meaning of the units
// and the environment once, then a line for each record. What it has written is
// complete after every call.
type Writer struct {
	out     io.Writer
	w       *benchfmt.Writer // to out
	config  []benchfmt.Config
	started bool
}

// NewWriter returns a Writer of records made in that environment. Nothing is
// written before the first record.
func NewWriter(w io.Writer, env Environment) *Writer {
	return &Writer{out: w, w: benchfmt.NewWriter(w), config: env.config()}
}

// Write writes a record. A configuration line holds for all that follows, in files
// that are appended too, so that of an invalid result is taken back at once.
func (w *Writer) Write(r Record) error {
	if !w.started {
		if err := w.writeUnits(); err != nil {
			return err
		}
		w.started = true
	}
	result := &benchfmt.Result{
		Config: w.config, Name: benchfmt.Name(r.Name()), Iters: int(r.Operations),
	}
	for _, m := range r.Metrics() {
		result.Values = append(result.Values, benchfmt.Value{Value: m.Value, Unit: m.Unit})
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

// mark says why what follows is invalid, or, with "", that it is not, around a record
// that is.
func (w *Writer) mark(r Record, why string) error {
	if r.Valid() {
		return nil
	}
	_, err := fmt.Fprintf(w.out, "\n%s\n\n", strings.TrimSpace(unit.Invalid+": "+why))
	return err
}

func (w *Writer) writeUnits() error {
	for _, u := range better {
		err := w.w.Write(&benchfmt.UnitMetadata{
			UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: u.unit, Key: "better"},
			OrigUnit:        u.unit, Value: u.better,
		})
		if err != nil {
			return fmt.Errorf("write unit %s: %w", u.unit, err)
		}
	}
	return nil
}
