package interop_test

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// pauses are the times without a turn. A bystander sends a request to the server every
// askEvery. The limit of a pause is counted in its answers: on a busy machine they are as
// late as those of all other clients.
type pauses struct {
	answers     int
	last        time.Time // a turn
	lastAnswers int       // answers up to that turn
	killed      time.Time
	killAnswers int
	longest     time.Duration // the longest pause, except after a kill
	recovered   time.Duration // the longest pause after a kill
}

const (
	askEvery = 50 * time.Millisecond
	// A waiter that is not woken waits until its session has ended.
	mostAnswers = int(sessionTimeout / askEvery)
	// The server expires sessions once a tick, and then the next contender needs time for
	// its turn.
	mostAfterKill = int((sessionTimeout + 200*time.Millisecond + time.Second) / askEvery)
	// With kazoo#649 all contenders wait until one of them gives up after 2 s. That can happen
	// twice in a row.
	mostStopped = int(5 * time.Second / askEvery)
	// The time by which a match may exceed its length on a busy machine.
	mostMore = int(2 * time.Minute / askEvery)
)

// turn records a turn, and reports whether it is the first after a kill.
func (p *pauses) turn(now time.Time) (afterKill bool) {
	switch {
	case p.last.IsZero():
	case p.last.Before(p.killed.Add(sessionTimeout)): // the next turn may have waited for the killed peer's session to expire
		p.recovered = max(p.recovered, min(now.Sub(p.killed), now.Sub(p.last)))
		afterKill = p.last.Before(p.killed)
	default:
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.last, p.lastAnswers = now, p.answers
	return afterKill
}

// stuck describes the current pause, if it is too long.
func (p *pauses) stuck(stops bool) string {
	most, from, why := mostAnswers, p.lastAnswers, "a turn"
	switch {
	case p.last.Before(p.killed):
		most, from, why = mostAfterKill, p.killAnswers, "a kill"
	case !p.killed.IsZero(): // the killed peer's znode may block some others for that long
		from = max(from, p.killAnswers+mostAfterKill)
	}
	if stops {
		most += mostStopped
	}
	if n := p.answers - from; !p.last.IsZero() && n > most {
		return fmt.Sprintf("no turn since %s, while the server answered %d requests, sent %v apart", why, n, askEvery)
	}
	return ""
}

// watch is the bystander. In a wait queue it lists the contenders. None may be unknown, and
// contenders of the other library must be shown in its dialect.
func (m *match) watch(stop <-chan struct{}) {
	s, err := zookeeper.Open(m.t.Context(), recipes.SessionConfig{Servers: []string{m.server}, SessionTimeout: time.Minute})
	if err != nil {
		m.t.Error(err)
		return
	}
	defer s.Close(m.t.Context())
	ask := time.NewTicker(askEvery)
	defer ask.Stop()
	for {
		select {
		case <-ask.C:
		case <-stop:
			return
		}
		if err := m.ask(s); err != nil {
			m.t.Error(err)
			return
		}
	}
}

func (m *match) ask(s recipes.Recipes) error {
	if m.pair.free {
		unused, err := s.Counter("/interop-unused", recipes.CounterConfig{})
		if err == nil {
			_, err = unused.Get(m.t.Context())
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.answers++
		return err
	}
	lines, err := s.Contenders(m.t.Context(), m.path)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers++
	if lines.Unknown > 0 {
		m.broken = append(m.broken, fmt.Sprintf("%d contenders were shown as unknown", lines.Unknown))
	}
	want := recipes.Dialect(filepath.Dir(m.pair.ours))
	for _, c := range lines.Contenders {
		if c.Dialect != want && (want == recipes.Kazoo || c.Kind != recipes.KindLock) {
			m.broken = append(m.broken, fmt.Sprintf("%s was shown in the dialect %s", c.Znode, c.Dialect))
		}
		if !c.Holds && m.pair.theirs == "semaphore" {
			m.waiting[int64(c.Token)] = c.SessionID
		}
	}
	return err
}
