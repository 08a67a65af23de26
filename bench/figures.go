package bench

import (
	"context"
	"fmt"
	"slices"
)

// figures reads the server's figures around the measured part.
type figures struct {
	read   func(context.Context) (map[string]float64, error)
	wanted []string
	before map[string]float64

	grown   map[string]float64 // by how much, by name
	missing []string           // wanted, and not there
}

func (f *figures) begin(ctx context.Context) (err error) {
	if f.read == nil {
		return nil
	}
	if f.before, err = f.read(ctx); err != nil {
		return fmt.Errorf("read the server's figures: %w", err)
	}
	return nil
}

func (f *figures) end(ctx context.Context) error {
	if f.read == nil {
		return nil
	}
	after, err := f.read(ctx)
	if err != nil {
		return fmt.Errorf("read the server's figures: %w", err)
	}
	f.grown = map[string]float64{}
	for name, value := range after {
		before, ok := f.before[name]
		// Of hundreds of figures most stand still; those that somebody wanted
		// are kept all the same.
		if ok && (value != before || slices.Contains(f.wanted, name)) {
			f.grown[name] = value - before
		}
	}
	for _, name := range f.wanted {
		if _, ok := f.grown[name]; !ok {
			f.missing = append(f.missing, name)
		}
	}
	return nil
}
