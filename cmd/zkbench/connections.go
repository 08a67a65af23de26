package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/bench/load"
)

// connections are what the experiment needs at once from this machine.
func (s settings) connections() int {
	n := slices.Max(s.contenders.values)
	if slices.Contains(s.workloads.values, load.Many) {
		n *= s.lines
	}
	return n
}

// admits returns a usageError if the servers say that they do not allow so many
// connections from one address. Whoever does not tell is taken to.
func (s server) admits(ctx context.Context, needed int) error {
	allowed := 0
	for _, addr := range s.words.addrs {
		conf, err := s.words.ask(ctx, addr, "conf")
		if err != nil {
			return nil
		}
		limit, ok := maxClientCnxns(conf)
		if !ok || limit == 0 {
			return nil
		}
		allowed += limit
	}
	if needed <= allowed {
		return nil
	}
	return usageError{fmt.Errorf("%d sessions are needed at once, and the servers allow %d connections from one address (maxClientCnxns); raise it, use fewer -contenders, or spread them over machines with -join",
		needed, allowed)}
}

// maxClientCnxns returns that setting from an answer to conf.
func maxClientCnxns(conf string) (int, bool) {
	for line := range strings.Lines(conf) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "maxClientCnxns="); ok {
			n, err := strconv.Atoi(value)
			return n, err == nil
		}
	}
	return 0, false
}
