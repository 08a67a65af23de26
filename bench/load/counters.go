package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

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
