package main

import (
	"errors"
	"flag"
	"time"
)

// durationVar is flag's, but for an error that says what a duration looks like.
// usage has to name it in back quotes.
func durationVar(f *flag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	f.Var(duration{d}, name, usage)
}

// duration is a flag.Value.
type duration struct{ to *time.Duration }

func (d duration) String() string {
	if d.to == nil { // flag asks what is no value
		return time.Duration(0).String()
	}
	return d.to.String()
}

func (d duration) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("a duration is a number and a unit, such as 500ms, 5s or 1m30s")
	}
	*d.to = parsed
	return nil
}
