package main

import (
	"flag"
	"fmt"
	"strconv"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
)

// limit adds a flag for a limit of the servers.
func (s *planSettings) limit(f *flag.FlagSet, name, usage string, least int, set func(*plan.Limits, int)) {
	f.Func(name, usage+";\nby default what the records tell, or else ZooKeeper's own default", func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least {
			return fmt.Errorf("%q is not a number of at least %d", v, least)
		}
		s.limits = append(s.limits, func(l *plan.Limits) { set(l, n) })
		return nil
	})
}

// limitsOf returns what bounds a line on the servers that are planned for.
func (s planSettings) limitsOf(m fitted) plan.Limits {
	l := plan.DefaultLimits(m.Strategy)
	if n, err := strconv.Atoi(m.details["server jute.maxbuffer"]); err == nil {
		l.MaxBuffer = n
	}
	if n, err := strconv.Atoi(m.details["server maxClientCnxns"]); err == nil {
		l.MaxClientCnxns = n
	}
	for _, set := range s.limits {
		set(&l)
	}
	return l
}
