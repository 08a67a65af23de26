package interop_test

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// pauses are the times without a turn. A bystander asks the server again and again. What
// a pause may last is counted in its answers, which are as late as those of all others
// on a machine that is busy.
type pauses struct {
	answers   int
	last      time.Time // a turn
	lastTold  int       // answers until then
	killed    time.Time
	killTold  int
	longest   time.Duration // without any turn, but after a kill
	recovered time.Duration // the longest pause after a kill
}

const (
	askEvery = 50 * time.Millisecond
	// A waiter that nobody wakes is left until its session has ended.
	mostAnswers = int(sessionTimeout / askEvery)
	// The server looks for ended sessions every tick, and then the next one has to have
	// its turn.
	mostAfterKill = int((sessionTimeout + 200*time.Millisecond + time.Second) / askEvery)
	// With kazoo#649 all wait until one has given up after 2 s, and then maybe again.
	mostStopped = int(5 * time.Second / askEvery)
	// What a busy machine may need beyond the time that was asked for.
	mostMore = int(2 * time.Minute / askEvery)
)

// turn notes a turn, and reports whether it is the first after a kill.
func (p *pauses) turn(now time.Time) (afterKill bool) {
	switch {
	case p.last.IsZero():
	case p.last.Before(p.killed.Add(sessionTimeout)): // as behind a reader that was killed
		p.recovered = max(p.recovered, min(now.Sub(p.killed), now.Sub(p.last)))
		afterKill = p.last.Before(p.killed)
	default:
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.last, p.lastTold = now, p.answers
	return afterKill
}

// stuck says for how long nobody has had a turn, if that is too long.
func (p *pauses) stuck(stops bool) string {
	most, from, why := mostAnswers, p.lastTold, "a turn"
	switch {
	case p.last.Before(p.killed):
		most, from, why = mostAfterKill, p.killTold, "a kill"
	case !p.killed.IsZero(): // what was killed may be in the way of some until then
		from = max(from, p.killTold+mostAfterKill)
	}
	if stops {
		most += mostStopped
	}
	if told := p.answers - from; !p.last.IsZero() && told > most {
		return fmt.Sprintf("nobody has had a turn since %s, for as long as it took the server to answer %d times, %v apart", why, told, askEvery)
	}
	return ""
}

// watch is the bystander. In a line it asks who stands there: all that do are known, and
// theirs are shown as theirs.
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
		nobody, err := s.Counter("/interop-nobody", recipes.CounterConfig{})
		if err == nil {
			_, err = nobody.Get(m.t.Context())
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
