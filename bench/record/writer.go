package record

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// InvalidKey is the configuration line of results that are invalid; it says why.
// Programs that compare results keep different configurations apart.
const InvalidKey = "invalid"

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
	config := w.config
	if !r.Valid() {
		config = append(config[:len(config):len(config)],
			benchfmt.Config{Key: InvalidKey, Value: []byte(strings.Join(r.Invalid, "; ")), File: true})
	}
	result := &benchfmt.Result{
		Config: config, Name: benchfmt.Name(r.Name()), Iters: int(r.Operations),
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
