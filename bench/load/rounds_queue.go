package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// elementsEach is how many elements each producer puts in a round.
const elementsEach = 10

// queueRound has the first half of the sessions put elements into a queue and the
// others take them; a session alone does both. Wait is from the asking to put an
// element until it has been taken, Service is of putting.
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

// queueing is a round of a queue under way.
type queueing struct {
	*recorder
	producers int
	start     time.Time
	left      atomic.Int64 // to be taken by whoever comes first

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
			return &Violation{"queue", fmt.Sprintf("element %s is not what was put", element.ID)}
		}
		who, n := binary.BigEndian.Uint64(element.Data), binary.BigEndian.Uint64(element.Data[8:])
		if !q.first(who, n) {
			return &Violation{"queue", fmt.Sprintf("element %d of producer %d was taken twice", n, who)}
		}
		q.record(q.m.Wait, time.Since(q.start)-time.Duration(binary.BigEndian.Uint64(element.Data[16:])))
	}
	return nil
}

// first reports whether the element has not been taken before.
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
