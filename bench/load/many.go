package load

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
)

// many cycles Lines independent lines at once. They begin their measured parts
// together, when all of them have warmed up. Each waits at its end for the others: none
// is measured while another stands still on purpose.
func (l Load) many(ctx context.Context) (Measurement, error) {
	if l.Lines < 1 || len(l.Sessions)%l.Lines != 0 {
		return Measurement{}, fmt.Errorf("%d sessions for %d lines; give the same number to each", len(l.Sessions), l.Lines)
	}
	each := len(l.Sessions) / l.Lines
	begin, end := newMeeting(l.Lines, l.Begin), newMeeting(l.Lines, l.End)
	parts := make([]Measurement, l.Lines)
	group, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		line := l
		line.Workload, line.Path = Cycle, fmt.Sprintf("%s/line-%d", l.Path, i)
		line.Sessions = l.Sessions[i*each : (i+1)*each]
		line.Begin, line.End = begin.meet, end.meet
		group.Go(func() (err error) {
			if parts[i], err = line.Run(ctx); err != nil {
				return fmt.Errorf("line %d: %w", i+1, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return Measurement{}, err
	}
	return merge(parts), nil
}

// meeting is where a number of lines wait for each other, once. The last to come
// calls then, and all get its error.
type meeting struct {
	mu      sync.Mutex
	missing int
	then    func(context.Context) error
	err     error
	all     chan struct{}
}

func newMeeting(n int, then func(context.Context) error) *meeting {
	return &meeting{missing: n, then: then, all: make(chan struct{})}
}

func (m *meeting) meet(ctx context.Context) error {
	m.mu.Lock()
	m.missing--
	if m.missing == 0 {
		m.err = call(ctx, m.then)
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
		return m.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
