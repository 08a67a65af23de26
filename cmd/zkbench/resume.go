package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

// sameTrials returns a usageError if a file that is continued was recorded with other
// flags: its trials and the new ones would pass for samples of the same thing. Flags
// that stand in the names of records may differ: those are other records.
func (c command) sameTrials(former []record.Run, s settings) error {
	for _, run := range former {
		was := c.defaults()
		flags := was.sweepFlags()
		flags.SetOutput(io.Discard)
		args := strings.Fields(run.Environment.Details["flags"])
		if len(args) == 0 || flags.Parse(args[1:]) != nil || was.check(given(flags)) != nil {
			continue // made by another version
		}
		for _, flag := range []struct {
			name     string
			was, now any
		}{
			{"duration", was.duration, s.duration},
			{"warmup", was.warmup, s.warmup},
			{"session-timeout", was.sessionTimeout, s.sessionTimeout},
			{"rounds", was.rounds, s.rounds},
			{"servers", cmp.Or(was.servers.String(), "none"), cmp.Or(s.servers.String(), "none")},
		} {
			if flag.was != flag.now {
				return usageError{fmt.Errorf("-resume: the file was recorded with -%s %v, and this is -%[1]s %[3]v; give the same, or another -record",
					flag.name, flag.was, flag.now)}
			}
		}
	}
	return nil
}
