package interop_test

import (
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// count takes the elements left in a queue, and compares all taken elements with those that
// were put. A process that was ended may have put or taken an element without a report.
func (m *match) count(d recipes.Dialect) {
	m.t.Helper()
	q := must.Get(m.open().Queue(m.path, recipes.QueueConfig{Dialect: d}))(m.t)
	left := 0
	for ; ; left++ {
		if _, err := q.Peek(m.t.Context()); errors.Is(err, recipes.ErrEmpty) {
			break
		}
		m.taken[string(must.Get(q.Take(m.t.Context()))(m.t).Data)]++
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
		m.broken = append(m.broken, fmt.Sprintf("%d elements were lost and %d were taken that no peer reported as put; %d processes were ended", lost, unsaid, ended))
	}
	m.t.Logf("interop: of %d elements %d were left, and %d were lost with a process that was ended", len(m.put), left, lost)
}
