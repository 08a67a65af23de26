package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// trace records a run. It has one line for each event, with the virtual time since the start and
// the actor. The order of events of one instant is not known, so they are sorted by their text.
type trace struct {
	start time.Time

	mu    sync.Mutex
	lines []event
}

type event struct {
	at   time.Duration
	text string
}

// add records an event. It formats at once, because the arguments may change.
func (t *trace) add(who, format string, args ...any) {
	at := time.Since(t.start)
	text := fmt.Sprintf("%12.6f  %-10s  %s\n", at.Seconds(), who, fmt.Sprintf(format, args...))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, event{at, text})
}

func (t *trace) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortFunc(t.lines, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.text, b.text)) })
	var b strings.Builder
	for _, e := range t.lines {
		b.WriteString(e.text)
	}
	return b.String()
}
