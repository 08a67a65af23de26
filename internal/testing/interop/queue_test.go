package interop_test

import (
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// count takes what is left in a queue, and compares. A process that is ended may have put
// an element, or taken one, without having said so.
func (m *match) count(d recipes.Dialect) {
	m.t.Helper()
	s, err := zookeeper.Open(m.t.Context(), recipes.SessionConfig{Servers: []string{m.server}})
	if err != nil {
		m.t.Fatal(err)
	}
	defer s.Close(m.t.Context())
	q, err := s.Queue(m.path, recipes.QueueConfig{Dialect: d})
	if err != nil {
		m.t.Fatal(err)
	}
	left := 0
	for ; ; left++ {
		if _, err := q.Peek(m.t.Context()); errors.Is(err, recipes.ErrEmpty) {
			break
		}
		e, err := q.Take(m.t.Context())
		if err != nil {
			m.t.Fatal(err)
		}
		m.taken[string(e.Data)]++
	}
	lost, unsaid := 0, 0
	for id := range m.put {
		if m.taken[id] == 0 {
			lost++
		}
	}
	for id, n := range m.taken {
		if n > 1 {
			m.broken = append(m.broken, fmt.Sprintf("%s was taken %d times", id, n))
		}
		if m.put[id] == 0 {
			unsaid++
		}
	}
	if ended := m.kills + peersOfAMatch; lost > ended || unsaid > ended {
		m.broken = append(m.broken, fmt.Sprintf("%d elements lost and %d taken that nobody had put; %d processes were ended", lost, unsaid, ended))
	}
	m.t.Logf("interop: of %d elements %d were left, and %d went with a process that was ended", len(m.put), left, lost)
}
