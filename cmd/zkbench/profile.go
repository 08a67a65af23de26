package main

import (
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
)

// startProfiles starts the CPU profile and returns what ends it and writes the
// heap profile. Empty names are no profiles. An error is a usageError.
func startProfiles(cpu, heap string) (stop func() error, err error) {
	c, err := createOutput("-cpuprofile", cpu)
	if err != nil {
		return nil, usageError{err}
	}
	h, err := createOutput("-memprofile", heap)
	if err != nil {
		c.discard()
		return nil, usageError{err}
	}
	if c != nil {
		if err := pprof.StartCPUProfile(c); err != nil {
			c.discard()
			h.discard()
			return nil, err
		}
	}
	return func() error {
		if c != nil {
			pprof.StopCPUProfile()
		}
		return errors.Join(c.commit(), writeHeap(h))
	}, nil
}

func writeHeap(o *output) error {
	if o == nil {
		return nil
	}
	defer o.discard()
	runtime.GC() // or what has just become garbage would be in it
	if err := pprof.WriteHeapProfile(o.File); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return o.commit()
}
