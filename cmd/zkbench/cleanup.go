package main

import "errors"

// cleanup ends what a run has started, in reverse.
type cleanup struct{ ends []func() error }

func (c *cleanup) add(end func() error) { c.ends = append(c.ends, end) }

// run ends everything, and adds what goes wrong to *err.
func (c *cleanup) run(err *error) {
	for i := len(c.ends) - 1; i >= 0; i-- {
		*err = errors.Join(*err, c.ends[i]())
	}
	c.ends = nil
}
