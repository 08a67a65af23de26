package simulation

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
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

// stream is a seeded source of random choices. Each connection, client and grant, and each source
// of faults, has its own stream by name. So its choices do not depend on when others are made.
type stream struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func newStream(seed uint64, name string) *stream {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return &stream{rand: rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// below returns a number from 0 to n-1.
func (s *stream) below(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

// between returns a random duration from low to just below high. It is random to the nanosecond, so
// two timers rarely fire at the same instant.
func (s *stream) between(low, high time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return low + time.Duration(s.rand.Int64N(int64(high-low)))
}

// about returns a random duration with this mean. Most are shorter, and a few are much longer.
func (s *stream) about(mean time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.rand.ExpFloat64() * float64(mean))
}

// chance is true with this probability.
func (s *stream) chance(percent int) bool { return s.below(100) < percent }

// pick returns one of the choices.
func pick[T any](s *stream, choices ...T) T { return choices[s.below(len(choices))] }
