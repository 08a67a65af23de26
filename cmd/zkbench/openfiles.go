package main

import (
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/bench/load"
)

// ownFiles is more than zkbench has open besides its sessions.
const ownFiles = 100

// openFiles is how many files the experiment needs at once in this process. A session
// needs one, an embedded server another for it, a relay two, and the relay of a failover,
// which listens for one session alone, three. Over
// the plugin or the relay process it is as many there.
func (s settings) openFiles() int {
	each := 1
	if s.inside() {
		each++
	}
	switch {
	case slices.Contains(s.workloads.values, load.Failover):
		each += 3
	case slices.Max(s.delays.values) > 0:
		each += 2
	}
	return s.connections()*each + ownFiles
}

// fits returns a usageError if that is more than the process may have.
func (s settings) fits() error {
	most, known := mostOpenFiles()
	if needed := s.openFiles(); known && needed > most {
		return usageError{fmt.Errorf("%d sessions need %d open files, and this process may have %d; "+
			"raise the limit (ulimit -n, LimitNOFILE= of systemd), use fewer -contenders, or spread them over machines with -join",
			s.connections(), needed, most)}
	}
	return nil
}
