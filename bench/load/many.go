package load

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// many cycles Lines independent lines at once. They begin their measured parts
// together, when all of them have warmed up, and each waits at its end for the
// others, so that none is measured while another stands still on purpose.
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

// merge adds measurements that were made at the same time.
func merge(parts []Measurement) Measurement {
	sum := newRecorder().m
	sum.Warm.Steady = true
	sum.Counters = difference(sum.Counters, sum.Counters)
	for _, p := range parts {
		sum.Operations += p.Operations
		sum.Elapsed = max(sum.Elapsed, p.Elapsed)
		sum.Unfinished += p.Unfinished
		sum.Turns = append(sum.Turns, p.Turns...)
		sum.Warm.Took = max(sum.Warm.Took, p.Warm.Took)
		sum.Warm.Steady = sum.Warm.Steady && p.Warm.Steady
		add(&sum.Counters, p.Counters, 1)
		for _, h := range []struct{ to, from *hdrhistogram.Histogram }{
			{sum.Wait, p.Wait}, {sum.Handoff, p.Handoff}, {sum.Service, p.Service}, {sum.Late, p.Late},
		} {
			h.to.Merge(h.from)
		}
	}
	return sum
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
