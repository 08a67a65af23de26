package load

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/internal/histogram"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Measurement is the result of one load.
type Measurement struct {
	// Operations is how many operations Elapsed contains: handoffs, turns of a single
	// contender, grants of an open load, elements of a queue, or rounds.
	Operations int64
	// Elapsed is from the first measured holder's request to leave until the last grant,
	// holds included. For rounds it is the sum of their times. For a failover it is from the
	// kill until the grant. For an open load it is at least Duration.
	Elapsed time.Duration
	// Wait, Handoff and Service are the times of the package comment, in nanoseconds.
	//
	// Wait has one value for each request of the measured part. A drain has none, unless it has a
	// single contender. In an open load a wait counts from the intended start, so that late starts
	// of the load do not hide waits.
	//
	// Handoff has one value for each grant to a contender that was in line when the previous holder
	// asked to leave. A single contender has none.
	Wait    *hdrhistogram.Histogram `json:"-"`
	Handoff *hdrhistogram.Histogram `json:"-"`
	Service *hdrhistogram.Histogram `json:"-"`
	// Late is how far behind schedule an open load started its acquisitions, in
	// nanoseconds; empty for other loads.
	Late *hdrhistogram.Histogram `json:"-"`
	// Unfinished is how many acquisitions of an open load still waited when it ended. Their
	// waits until then are in Wait.
	Unfinished int64 `json:",omitempty"`
	// Turns is how many operations each contender of a cycle had, in the order of the
	// sessions. It is nil if that was not counted, as in a drain of several contenders, where
	// each has one.
	Turns []int64 `json:",omitempty"`
	// Grants are the grants of this process in a line that processes share, in order. A grant
	// of an open load has only a token. It is nil for other loads, and after Workload.Merge.
	Grants []Grant `json:"-"`
	// Timeline is the series of a timeline; nil for other loads. Elapsed is its length.
	Timeline *timeline.Series `json:",omitempty"`
	// Warm is the outcome of the warm-up.
	Warm Warm `json:",omitzero"`
	// Counters is the traffic of all sessions in the measured part, keep-alives included. In a
	// failover it is that of the survivors.
	Counters recipes.Stats
}

// Warm is the outcome of a warm-up.
type Warm struct {
	// In a line of one process, Took is the time from the first grant to the beginning of the
	// measured part. For other loads it is Load.Warmup, or 0 if they have no warm-up.
	Took time.Duration
	// Steady is false if the warm-up ended at its longest duration, or did not check.
	Steady bool
}

type recorder struct {
	mu sync.Mutex
	m  Measurement
}

func newRecorder() *recorder {
	return &recorder{m: Measurement{
		Wait: histogram.New(), Handoff: histogram.New(), Service: histogram.New(), Late: histogram.New(),
	}}
}

func (r *recorder) count(change func(*Measurement)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.m)
}

func (r *recorder) record(h *hdrhistogram.Histogram, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	histogram.Record(h, d)
}

// merge adds measurements that were made at the same time. Histograms add exactly.
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

// Merge adds what several processes measured of one load. In a line that they shared (see
// Load.Shared) the tokens give the order of all grants. Merge returns a [*Violation] if two
// tokens are equal, or if the tokens of one process do not grow.
//
// It cannot check that two processes did not hold at the same time, because the clocks of
// two machines differ by more than a handoff takes. For the same reason Handoff has only
// handoffs within one process. Elapsed is the longest of all processes.
func (w Workload) Merge(parts []Measurement) (Measurement, error) {
	sum := merge(parts)
	if w != Drain && w != Cycle && w != Open {
		return sum, nil
	}
	grants, err := inOrder(parts)
	if err != nil || w == Open {
		return sum, err
	}
	sum.Operations-- // the first grant of the line was not a handoff
	for i := 1; i < len(grants); i++ {
		from, to := grants[i-1], grants[i]
		if from.part == to.part && to.Joined <= from.Left {
			histogram.Record(sum.Handoff, max(0, to.Granted-from.Left))
		}
	}
	return sum, nil
}

type placed struct {
	Grant
	part int
}

func inOrder(parts []Measurement) ([]placed, error) {
	var all []placed
	for i, p := range parts {
		for j, g := range p.Grants {
			if j > 0 && g.Token <= p.Grants[j-1].Token {
				return nil, &Violation{"growing tokens", fmt.Sprintf("process %d was granted with token %d after token %d", i+1, g.Token, p.Grants[j-1].Token)}
			}
			all = append(all, placed{g, i})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.Token, b.Token) })
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.Token == b.Token {
			return nil, &Violation{"growing tokens", fmt.Sprintf("processes %d and %d were both granted with token %d", a.part+1, b.part+1, a.Token)}
		}
	}
	return all, nil
}

// parallelism is how many sessions at once read their counters or join a line for the first time.
// It is large enough to hide round trips, and small enough not to overload the server.
const parallelism = 32

// quiet is how long all sessions must send nothing before a line counts as at rest.
const quiet = 20 * time.Millisecond

// total adds up the counters of all sessions. For sessions in a plugin, each read is a call.
func total(ctx context.Context, sessions []recipes.Client) (recipes.Stats, error) {
	sum := recipes.Stats{ByKind: map[string]int64{}}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for _, s := range sessions {
		group.Go(func() error {
			c, err := s.Stats(ctx)
			if err != nil {
				return fmt.Errorf("read counters of session %#x: %w", s.ID(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			add(&sum, c, 1)
			return nil
		})
	}
	return sum, group.Wait()
}

// settled returns the counters of all sessions once none of them sends anything.
//
// A contender that has joined the line may not have set its watch yet. The contract does
// not report that, so settled reads the counters until they no longer change.
func settled(ctx context.Context, sessions []recipes.Client) (recipes.Stats, error) {
	before, err := total(ctx, sessions)
	for err == nil {
		if err = pause(ctx, quiet); err != nil {
			break
		}
		var now recipes.Stats
		if now, err = total(ctx, sessions); err != nil {
			break
		}
		if now.Reads == before.Reads && now.Writes == before.Writes && now.WatchEvents == before.WatchEvents {
			return now, nil
		}
		before = now
	}
	return recipes.Stats{}, err
}

// counted calls measure and returns what that cost all sessions. It reads the counters
// before and after, when no session sends anything.
func (l Load) counted(ctx context.Context, measure func(context.Context) error) (recipes.Stats, error) {
	before, err := settled(ctx, l.Sessions)
	if err != nil {
		return recipes.Stats{}, err
	}
	if err := l.Begin(ctx); err != nil {
		return recipes.Stats{}, err
	}
	if err := measure(ctx); err != nil {
		return recipes.Stats{}, err
	}
	after, err := settled(ctx, l.Sessions)
	if err != nil {
		return recipes.Stats{}, err
	}
	return difference(after, before), l.End(ctx)
}

func difference(after, before recipes.Stats) recipes.Stats {
	d := recipes.Stats{ByKind: map[string]int64{}}
	add(&d, after, 1)
	add(&d, before, -1)
	for kind, n := range d.ByKind {
		if n == 0 {
			delete(d.ByKind, kind)
		}
	}
	return d
}

func add(sum *recipes.Stats, c recipes.Stats, sign int64) {
	sum.Reads += sign * c.Reads
	sum.Writes += sign * c.Writes
	sum.Pings += sign * c.Pings
	sum.WatchEvents += sign * c.WatchEvents
	sum.RequestBytes += sign * c.RequestBytes
	sum.ResponseBytes += sign * c.ResponseBytes
	sum.Reconnects += sign * c.Reconnects
	sum.Handoffs += sign * c.Handoffs
	sum.Fallbacks += sign * c.Fallbacks
	sum.Asked += sign * c.Asked
	for kind, n := range c.ByKind {
		sum.ByKind[kind] += sign * n
	}
}

// pause waits for d. If ctx is done first, it returns the cause. If d is not positive, it
// returns nil without checking ctx.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
