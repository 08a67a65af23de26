package record

import (
	"fmt"
	"io"

	"golang.org/x/perf/benchfmt"
)

// Writer writes records in the Go benchmark format: the meaning of the units
// and the environment once, then a line for each record. What it has written is
// complete after every call.
type Writer struct {
	w       *benchfmt.Writer
	config  []benchfmt.Config
	started bool
}

// NewWriter returns a Writer of records made in that environment. Nothing is
// written before the first record.
func NewWriter(w io.Writer, env Environment) *Writer {
	return &Writer{w: benchfmt.NewWriter(w), config: env.config()}
}

// Write writes a record.
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
	if err := w.w.Write(result); err != nil {
		return fmt.Errorf("write result of %s: %w", r.Name(), err)
	}
	return nil
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
