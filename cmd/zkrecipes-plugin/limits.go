package main

import (
	"flag"
	"fmt"
	"strconv"

	"github.com/zkrecipes/zkrecipes/plugin"
)

// defineLimits defines flags for the limits. An operator makes the host pass them to the
// plugin (host.Config.Args).
func defineLimits(flags *flag.FlagSet, l *plugin.Limits) {
	most, _ := plugin.Limits{}.Normalize() // no field is negative
	for _, f := range []struct {
		name, usage string
		value       *int
		otherwise   int
	}{
		{"max-sessions", "`number` of sessions of this plugin", &l.Sessions, most.Sessions},
		{"max-holds", "`number` of what one session holds or waits for", &l.Grants, most.Grants},
		{"max-watches", "`number` of streams of one session besides its own", &l.Watches, most.Watches},
		{"max-message", "`bytes` of one message from a host", &l.Message, most.Message},
	} {
		flags.Func(f.name, fmt.Sprintf("limit on the %s (default %d)", f.usage, f.otherwise), func(s string) error {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 {
				return fmt.Errorf("it must be a whole number from 1")
			}
			*f.value = n
			return nil
		})
	}
}
