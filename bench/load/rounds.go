package load

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// round runs one round of a recipe with all sessions, at a path of its own. It returns how
// many operations it had and how long they took.
type round func(ctx context.Context, path string, rec *recorder) (operations int64, took time.Duration, err error)

// rounds runs one round that is not measured, which creates the parents of the paths, and
// then the measured ones.
func (l Load) rounds(ctx context.Context, r round) (Measurement, error) {
	if least := l.Workload.least(); len(l.Sessions) < least {
		return Measurement{}, fmt.Errorf("workload %s needs at least %d contenders", l.Workload, least)
	}
	if l.Rounds < 1 {
		return Measurement{}, fmt.Errorf("%d rounds; at least 1", l.Rounds)
	}
	if _, _, err := r(ctx, l.Path+"/warm-up", newRecorder()); err != nil {
		return Measurement{}, err
	}
	rec := newRecorder()
	counters, err := l.counted(ctx, func(ctx context.Context) error {
		for i := range l.Rounds {
			operations, took, err := r(ctx, fmt.Sprintf("%s/round-%d", l.Path, i), rec)
			if err != nil {
				return fmt.Errorf("round %d: %w", i+1, err)
			}
			rec.m.Operations += operations
			rec.m.Elapsed += took
		}
		return nil
	})
	if err != nil {
		return Measurement{}, err
	}
	rec.m.Counters = counters
	return rec.m, nil
}

// each calls do for all sessions at once. The first error cancels the others.
func each(ctx context.Context, sessions []recipes.Client, do func(ctx context.Context, i int, s recipes.Client) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range sessions {
		group.Go(func() error { return do(ctx, i, s) })
	}
	return group.Wait()
}

const elementsEach = 10

// queueRound lets the first half of the sessions put elements into a queue and the others
// take them; a single session does both. Wait is from the call of Put until the element is
// taken, Service is the time of Put.
func (l Load) queueRound(ctx context.Context, path string, rec *recorder) (int64, time.Duration, error) {
	producers := max(1, len(l.Sessions)/2)
	q := &queueing{recorder: rec, producers: producers, start: time.Now(), seen: map[[2]uint64]bool{}}
	total := int64(producers * elementsEach)
	q.left.Store(total)
	err := each(ctx, l.Sessions, func(ctx context.Context, i int, s recipes.Client) error {
		queue, err := s.Queue(path, recipes.QueueConfig{})
		if err != nil {
			return err
		}
		if i < producers {
			if err := q.produce(ctx, i, queue); err != nil {
				return err
			}
		}
		if i >= producers || len(l.Sessions) == 1 {
			return q.consume(ctx, queue)
		}
		return nil
	})
	return total, time.Since(q.start), err
}

type queueing struct {
	*recorder
	producers int
	start     time.Time
	left      atomic.Int64 // elements that no consumer has claimed yet

	mu   sync.Mutex
	seen map[[2]uint64]bool // by producer and number
}

func (q *queueing) produce(ctx context.Context, producer int, queue recipes.Queue) error {
	for n := range elementsEach {
		asked := time.Since(q.start)
		element := binary.BigEndian.AppendUint64(nil, uint64(producer))
		element = binary.BigEndian.AppendUint64(element, uint64(n))
		element = binary.BigEndian.AppendUint64(element, uint64(asked))
		if _, err := queue.Put(ctx, element); err != nil {
			return fmt.Errorf("put: %w", err)
		}
		q.record(q.m.Service, time.Since(q.start)-asked)
	}
	return nil
}

func (q *queueing) consume(ctx context.Context, queue recipes.Queue) error {
	for q.left.Add(-1) >= 0 {
		element, err := queue.Take(ctx)
		if err != nil {
			return fmt.Errorf("take: %w", err)
		}
		if len(element.Data) != 24 {
			return &Violation{"queue", fmt.Sprintf("element %s is not one that was put", element.ID)}
		}
		who, n := binary.BigEndian.Uint64(element.Data), binary.BigEndian.Uint64(element.Data[8:])
		if !q.first(who, n) {
			return &Violation{"queue", fmt.Sprintf("element %d of producer %d was taken twice", n, who)}
		}
		q.record(q.m.Wait, time.Since(q.start)-time.Duration(binary.BigEndian.Uint64(element.Data[16:])))
	}
	return nil
}

func (q *queueing) first(producer, n uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := [2]uint64{producer, n}
	if q.seen[k] || producer >= uint64(q.producers) || n >= elementsEach {
		return false
	}
	q.seen[k] = true
	return true
}

// barrierRound lets all sessions except the first wait at a barrier, which the first
// removes. It times from the call of Remove until each has passed.
func (l Load) barrierRound(ctx context.Context, path string, rec *recorder) (int64, time.Duration, error) {
	keeper, err := l.Sessions[0].Barrier(path)
	if err != nil {
		return 0, 0, err
	}
	if err := keeper.Set(ctx, nil); err != nil {
		return 0, 0, err
	}
	var removed atomic.Pointer[time.Time]
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return each(gctx, l.Sessions[1:], func(ctx context.Context, _ int, s recipes.Client) error {
			barrier, err := s.Barrier(path)
			if err != nil {
				return err
			}
			if err := barrier.Wait(ctx); err != nil {
				return err
			}
			start := removed.Load()
			if start == nil {
				return &Violation{"barrier", "a session passed it before it was removed"}
			}
			rec.record(rec.m.Wait, time.Since(*start))
			return nil
		})
	})
	// The contract does not report when a session has begun to wait.
	if _, err := settled(gctx, l.Sessions); err != nil {
		return 0, 0, cmp.Or(group.Wait(), err)
	}
	start := time.Now()
	removed.Store(&start)
	err = keeper.Remove(gctx)
	if waited := group.Wait(); waited != nil {
		return 0, 0, waited
	}
	return 1, time.Since(start), err
}

// doubleBarrierRound lets all sessions enter a double barrier and leave it, as in table 3
// of the ZooKeeper paper. Wait is the time of Enter, Service that of Leave.
func (l Load) doubleBarrierRound(ctx context.Context, path string, rec *recorder) (int64, time.Duration, error) {
	n := int64(len(l.Sessions))
	var entering, leaving atomic.Int64
	start := time.Now()
	err := each(ctx, l.Sessions, func(ctx context.Context, _ int, s recipes.Client) error {
		barrier, err := s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: int(n)})
		if err != nil {
			return err
		}
		asked := time.Now()
		entering.Add(1)
		passage, err := barrier.Enter(ctx, nil)
		if err != nil {
			return fmt.Errorf("enter: %w", err)
		}
		if there := entering.Load(); there != n {
			return &Violation{"double barrier", fmt.Sprintf("a session had entered when only %d of %d had arrived", there, n)}
		}
		rec.record(rec.m.Wait, time.Since(asked))
		asked = time.Now()
		leaving.Add(1)
		if err := passage.Leave(ctx); err != nil {
			return fmt.Errorf("leave: %w", err)
		}
		if gone := leaving.Load(); gone != n {
			return &Violation{"double barrier", fmt.Sprintf("a session had left when only %d of %d were leaving", gone, n)}
		}
		rec.record(rec.m.Service, time.Since(asked))
		return nil
	})
	return 1, time.Since(start), err
}

// commitRound runs a two-phase commit. The first session coordinates it, all others vote
// to commit. Wait is from a site's Join until it has the decision, Service from Begin until
// the coordinator has the confirmation of all sites.
func (l Load) commitRound(ctx context.Context, path string, rec *recorder) (int64, time.Duration, error) {
	tx, err := l.Sessions[0].Transaction(path, recipes.TransactionConfig{})
	if err != nil {
		return 0, 0, err
	}
	names := make([]string, len(l.Sessions)-1)
	for i := range names {
		names[i] = fmt.Sprintf("site-%d", i+1)
	}
	start := time.Now()
	if err := tx.Begin(ctx, nil, names...); err != nil {
		return 0, 0, fmt.Errorf("begin: %w", err)
	}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		decision, err := tx.Coordinate(gctx)
		if err == nil && !decision.Commit {
			err = &Violation{"two-phase commit", "all voted to commit, and it was aborted: " + decision.Reason}
		}
		return err
	})
	group.Go(func() error {
		return each(gctx, l.Sessions[1:], func(ctx context.Context, i int, s recipes.Client) error {
			return vote(ctx, s, path, names[i], rec)
		})
	})
	if err := group.Wait(); err != nil {
		return 0, 0, err
	}
	took := time.Since(start)
	rec.record(rec.m.Service, took)
	return 1, took, nil
}

func vote(ctx context.Context, s recipes.Client, path, name string, rec *recorder) error {
	tx, err := s.Transaction(path, recipes.TransactionConfig{})
	if err != nil {
		return err
	}
	asked := time.Now()
	site, err := tx.Join(ctx, name)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if err := site.Vote(ctx, recipes.VoteCommit); err != nil {
		return fmt.Errorf("vote: %w", err)
	}
	decision, err := site.Wait(ctx)
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	rec.record(rec.m.Wait, time.Since(asked))
	if !decision.Commit {
		return &Violation{"two-phase commit", name + " got the decision to abort: " + decision.Reason}
	}
	if err := site.Done(ctx); err != nil {
		return fmt.Errorf("done: %w", err)
	}
	return nil
}
