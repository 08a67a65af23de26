// Package timeline has the faults of a timeline, and the series that a timeline records: the
// grants, waits and handoffs of each second.
//
//  1. Read faults with [Parse], and check them together with [Order].
//  2. Give the events of a load to a [Recorder], in the order in which they happen.
//  3. [Recorder.End] returns the [Series].
package timeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Victim is what a fault hits.
type Victim string

// The victims of faults. The leader and a follower are killed and started again. The holder of
// the lock is cut off from all servers until its session is lost.
const (
	Leader   Victim = "leader"
	Follower Victim = "follower"
	Holder   Victim = "holder"
)

// Server is a victim that can be killed. Restart starts it again, and returns when it serves.
type Server interface {
	Kill() error
	Restart(ctx context.Context) error
}

// Fault is a fault at a time of a timeline.
type Fault struct {
	Victim Victim
	At     time.Duration // from the beginning of the timeline
	// Restart is how long after the kill a server is started again; 0 for a holder.
	Restart time.Duration
}

const (
	// Longest is the longest timeline, and so the latest time of a fault.
	Longest = time.Hour
	// defaultRestart is more than the servers need to notice the kill, and to elect a leader.
	defaultRestart = 5 * time.Second
	restartKey     = "restart="
)

// Parse reads a fault, such as leader@10s, follower@20s:restart=2s or holder@30s.
func Parse(text string) (Fault, error) {
	wrong := func(format string, args ...any) (Fault, error) {
		return Fault{}, fmt.Errorf("fault %q: %s", text, fmt.Sprintf(format, args...))
	}
	victim, rest, timed := strings.Cut(text, "@")
	at, option, restarts := strings.Cut(rest, ":")
	f := Fault{Victim: Victim(victim)}
	switch f.Victim {
	case Leader, Follower:
		f.Restart = defaultRestart
	case Holder:
		if restarts {
			return wrong("only a killed server has an option; a holder is cut off until its session is lost")
		}
	default:
		return wrong("%q is unknown; one of %s, %s, %s", victim, Leader, Follower, Holder)
	}
	if !timed {
		return wrong("it has no time; write it as in %s@10s", victim)
	}
	var err error
	if f.At, err = duration(at); err != nil {
		return wrong("%v", err)
	}
	if restarts {
		after, ok := strings.CutPrefix(option, restartKey)
		if !ok {
			return wrong("option %q is unknown; the only one is %s5s", option, restartKey)
		}
		if f.Restart, err = duration(after); err != nil {
			return wrong("%s: %v", restartKey, err)
		}
	}
	return f, nil
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a time, such as 10s", text)
	case d <= 0 || d > Longest:
		return 0, fmt.Errorf("%v is not above 0 and at most %v", d, Longest)
	}
	return d, nil
}

// String is the reverse of Parse.
func (f Fault) String() string {
	text := fmt.Sprintf("%s@%v", f.Victim, f.At)
	if f.Server() && f.Restart != defaultRestart {
		text += fmt.Sprintf(":%s%v", restartKey, f.Restart)
	}
	return strings.ReplaceAll(text, "µ", "u")
}

// MarshalText returns the text of String.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText is Parse.
func (f *Fault) UnmarshalText(text []byte) (err error) {
	*f, err = Parse(string(text))
	return err
}

// Server reports whether the fault kills a server.
func (f Fault) Server() bool { return f.Victim != Holder }

// What describes the fault after it has happened.
func (f Fault) What() string {
	if f.Server() {
		return string(f.Victim) + " killed"
	}
	return string(f.Victim) + " cut off"
}

// Order sorts faults by their times. It returns an error if two servers would be down at once,
// because two of three servers are needed for a majority.
func Order(faults []Fault) error {
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	var down *Fault
	for i, f := range faults {
		if !f.Server() {
			continue
		}
		if down != nil && f.At < down.At+down.Restart {
			return fmt.Errorf("fault %v comes before the server of %v is started again, at %v; only one server may be down at a time", f, *down, down.At+down.Restart)
		}
		down = &faults[i]
	}
	return nil
}

// End returns the time at which the last killed server is started again, or the last holder is
// cut off.
func End(faults []Fault) (last time.Duration) {
	for _, f := range faults {
		last = max(last, f.At+f.Restart)
	}
	return last
}

// Text lists faults, separated by commas.
func Text(faults []Fault) string {
	words := make([]string, len(faults))
	for i, f := range faults {
		words[i] = f.String()
	}
	return strings.Join(words, ",")
}
