package main

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
)

type planSettings struct {
	at       []int
	p99      time.Duration
	hold     time.Duration
	factor   float64
	lineRate float64
	seed     uint64
	rtt      time.Duration
	choose   bool
	watches  int
	servers  int
	limits   []func(*plan.Limits) // from the flags about servers and machines
	productionFlags
}

func (s *planSettings) addLimits(f *flag.FlagSet) {
	const known = ";\nby default the value in the records, or else ZooKeeper's own default"
	s.addLimit(f, "max-listing", "the clients' max_listing, a `number` of bytes (default 67108864)", 1, func(l *plan.Limits, n int) { l.MaxListing = n })
	s.addLimit(f, "max-client-cnxns", "the servers' maxClientCnxns, a `number`; 0 is no limit"+known, 0, func(l *plan.Limits, n int) { l.MaxClientCnxns = n })
	s.addLimit(f, "descriptors", "`number` of open files that a process of contenders may have (default 524288, as in systemd)", 1, func(l *plan.Limits, n int) { l.Descriptors = n })
	s.addLimit(f, "network", "the network's `speed` in Mbit/s (default 1000)", 1, func(l *plan.Limits, n int) { l.Network = float64(n) * 1e6 / 8 })
}

// addLimit adds a flag for a limit of the servers or of the machines.
func (s *planSettings) addLimit(f *flag.FlagSet, name, usage string, least int, set func(*plan.Limits, int)) {
	f.Func(name, usage, func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least {
			return fmt.Errorf("%q is not a number of at least %d", v, least)
		}
		s.limits = append(s.limits, func(l *plan.Limits) { set(l, n) })
		return nil
	})
}

func (s planSettings) limitsOf(m fitted) plan.Limits {
	l := plan.DefaultLimits(m.Strategy)
	if n, err := strconv.Atoi(m.details["server maxClientCnxns"]); err == nil {
		l.MaxClientCnxns = n
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(m.details["server os.memory.max"], "MB")); err == nil {
		l.Heap = n << 20
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(m.details["memory"], " kB")); err == nil {
		l.Memory = n << 10
	}
	if n, err := strconv.Atoi(m.details["cpus"]); err == nil {
		l.Processors = n
	}
	fsync, _, _ := strings.Cut(m.details["server fsync"], " ")
	if d, err := time.ParseDuration(fsync); err == nil {
		l.Fsync = d
	}
	for _, set := range s.limits {
		set(&l)
	}
	return l
}
