package simulation

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// trace is what happened in a run, for people: one line an event, with the virtual
// time since the start and who did it.
type trace struct {
	start time.Time

	mu    sync.Mutex
	lines []string
}

// add notes an event. It formats at once: arguments may change.
func (t *trace) add(who, format string, args ...any) {
	line := fmt.Sprintf("%12.6f  %-10s  %s", time.Since(t.start).Seconds(), who, fmt.Sprintf(format, args...))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
}

func (t *trace) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n") + "\n"
}
