package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/machine"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
)

// ownFiles is an upper bound of the files that zkbench has open besides its sessions.
const ownFiles = 100

// connections is how many connections the experiment needs at once from this machine.
func (s settings) connections() int {
	n := slices.Max(s.Contenders)
	if slices.Contains(s.Workloads, load.Many) {
		n *= s.Lines
	}
	return n
}

// openFiles is how many files the experiment needs at once in this process. A session needs one
// file. For each session, an embedded server needs another file, and a relay needs two. The relay
// of a failover or of -fault holder needs three, because it listens for that session only. The
// plugin or the relay process needs as many.
func (s settings) openFiles() int {
	each := 1
	if s.Inside() {
		each++
	}
	switch {
	case s.cutsOff():
		each += 3
	case slices.Max(s.Delays) > 0:
		each += 2
	}
	if slices.Contains(s.via, transport.Relay) { // the relay process needs two
		each = max(each, 2)
	}
	return s.connections()*each + ownFiles
}

func (s settings) fits() error { return s.fitsInto(machine.This()) }

func (s settings) fitsInto(m machine.Machine) error {
	sessions := s.connections()
	var lacks []string
	if needed := s.openFiles(); m.Files > 0 && needed > m.Files {
		lacks = append(lacks, fmt.Sprintf("%d sessions need %d open files, and this process may have %d; raise the limit (ulimit -n, LimitNOFILE= of systemd) by %d",
			sessions, needed, m.Files, needed-m.Files))
	}
	servers := max(1, s.Ensemble, m.Addresses(s.Servers))
	if most := m.Ports * servers; m.Ports > 0 && sessions > most {
		lacks = append(lacks, fmt.Sprintf("%d sessions need as many ports, and this machine has %d for each of %d addresses of servers; widen net.ipv4.ip_local_port_range by %d",
			sessions, m.Ports, servers, (sessions-most+servers-1)/servers))
	}
	if needed := int64(sessions) * s.sessionMemory(); m.Memory > 0 && needed > m.Memory {
		lacks = append(lacks, fmt.Sprintf("%d sessions need about %d MiB of memory, and %d MiB are available%s: %d MiB are missing",
			sessions, needed>>20, m.Memory>>20, m.Limited, (needed-m.Memory)>>20+1))
	}
	if len(lacks) == 0 {
		return nil
	}
	return exit.Usage(fmt.Errorf("%s; or use fewer -contenders, or spread them over machines with -join", strings.Join(lacks, "; ")))
}

// sessionMemory is how much memory a session with its contender needs in all processes of this
// machine, in bytes. It is more than was measured, to allow for garbage.
func (s settings) sessionMemory() int64 {
	each := int64(64 << 10)
	if s.Inside() {
		each += 32 << 10
	}
	if slices.Contains(s.via, transport.Plugin) || slices.Contains(s.via, transport.InProcess) {
		each += 96 << 10
	}
	if s.cutsOff() || slices.Max(s.Delays) > 0 {
		each += 64 << 10
	}
	return each
}
