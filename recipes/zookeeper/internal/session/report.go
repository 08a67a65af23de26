package session

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Report reports the session to m until it ends. From now on znode.Metered reports the grants of
// its recipes. Call it at most once, before the session's first recipe is made.
func (s *Session) Report(m *telemetry.Meters) {
	s.meters = m
	source := &telemetry.Source{
		Stats:     func(context.Context) (recipes.Stats, error) { return s.Counters(), nil },
		Remaining: s.Remaining,
	}
	m.Opened(source)
	s.Notify(func(e recipes.Event) {
		if e.State == recipes.Lost {
			m.Lost(source, e.Reason)
		}
	})
	s.OnEnd(func() {
		m.Read(context.Background(), source)
		m.Forget(source)
	})
}

// Meters returns the meters that Report was given, or nil.
func (s *Session) Meters() *telemetry.Meters { return s.meters }
