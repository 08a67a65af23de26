package zookeeper_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// The sweep over the priority lock, on the stage of the line's.

func (s *lineStage) priority(session recipes.Session, joined func(recipes.Place), change ...func(*recipes.PriorityLockConfig)) recipes.PriorityLock {
	cfg := recipes.PriorityLockConfig{Priority: 5, Data: []byte("who"), Joined: joined}
	for _, c := range change {
		c(&cfg)
	}
	return must[recipes.PriorityLock](s.t)(session.PriorityLock(sweepPath, cfg))
}

func priorityReadAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h, err := s.priority(s.victim, joined).AcquireRead(ctx)
	if err != nil {
		return err
	}
	return s.use(ctx, h, &s.readers)
}

func priorityWriteAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h, err := s.priority(s.victim, joined, func(c *recipes.PriorityLockConfig) { c.Ask = true }).AcquireWrite(ctx)
	if err != nil {
		return err
	}
	return s.use(ctx, h, &s.writers)
}

func priorityTryAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h, err := s.priority(s.victim, joined).TryWrite(ctx)
	if errors.Is(err, recipes.ErrContended) && !errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	s.inside(&s.writers)()
	return giveBack(h.Release)
}

// handOffAct hands off to the last in line while a better one waits.
func handOffAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h, err := s.priority(s.victim, joined).AcquireWrite(ctx)
	if err != nil {
		return err
	}
	order := make(chan int, 2)
	var others sync.WaitGroup
	defer others.Wait()
	var last recipes.Place
	for _, priority := range []int{0, 9} {
		place := make(chan recipes.Place, 1)
		l := s.priority(s.other, func(p recipes.Place) { place <- p }, func(c *recipes.PriorityLockConfig) { c.Priority = priority })
		waits := bounded(s.t)
		others.Go(func() {
			h, err := l.AcquireWrite(waits)
			if err == nil {
				s.inside(&s.writers)()
				order <- priority
				err = h.Release(waits)
			}
			if err != nil {
				s.t.Errorf("priority %d: %v", priority, err)
			}
		})
		last = <-place
	}
	handed := h.HandOff(ctx, last.Znode)
	var released error
	if handed != nil {
		released = h.Release(bounded(s.t))
		if errors.Is(handed, recipes.ErrUnknownOutcome) || h.Err() != nil {
			released = nil
		}
	}
	first := <-order
	<-order
	if handed == nil && first != 9 && !s.expires {
		s.t.Errorf("priority %d came before the successor", first)
	}
	return errors.Join(guardedError(handed), released)
}

func successorAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h := must[recipes.PriorityHold](s.t)(s.priority(s.other, nil).AcquireWrite(bounded(s.t)))
	place := make(chan recipes.Place, 1)
	successors := s.priority(s.victim, func(p recipes.Place) { joined(p); place <- p }, func(c *recipes.PriorityLockConfig) { c.Priority = 9 })
	ended := make(chan error, 1)
	go func() {
		g, err := successors.AcquireWrite(ctx)
		if err == nil {
			err = s.use(ctx, g, &s.writers)
		}
		ended <- err
	}()
	select {
	case p := <-place:
		if err := h.HandOff(bounded(s.t), p.Znode); err == nil {
			return <-ended
		} else if !errors.Is(err, recipes.ErrNoNode) {
			s.t.Error(err)
		}
	case err := <-ended:
		ended <- err
	}
	if err := h.Release(bounded(s.t)); err != nil {
		s.t.Error(err)
	}
	return <-ended
}

func holdPriority(s *lineStage, ctx context.Context) func() error {
	lowest := func(c *recipes.PriorityLockConfig) { c.Priority, c.Revocable = 99, true }
	h := must[recipes.PriorityHold](s.t)(s.priority(s.other, nil, lowest).AcquireWrite(ctx))
	done := s.inside(&s.writers)
	return func() error { done(); return h.Release(ctx) }
}

// priorityFree checks that nothing of the victim holds anybody back, though its
// session is not closed: no znode, and no successor that has left.
func (s *lineStage) priorityFree(ctx context.Context) {
	lowest := func(c *recipes.PriorityLockConfig) { c.Priority = 99 }
	h, err := s.priority(s.other, nil, lowest).AcquireWrite(ctx)
	if err != nil {
		s.t.Fatalf("after the fault another writer: %v", err)
	}
	s.inside(&s.writers)()
	if err := h.Release(ctx); err != nil {
		s.t.Error(err)
	}
}

var priorityScenes = []lineScene{
	{"read/free", priorityReadAct, nil},
	{"read/behind a writer", priorityReadAct, holdPriority},
	{"write/free", priorityWriteAct, nil},
	{"write/behind a writer", priorityWriteAct, holdPriority},
	{"try/free", priorityTryAct, nil},
	{"try/behind a writer", priorityTryAct, holdPriority},
	{"hand-off", handOffAct, nil},
	{"successor", successorAct, nil},
}

func TestFaultSweepOfThePriorityLock(t *testing.T) {
	sweepFaults(t, "the priority lock", 5, lineScenarios(priorityScenes, (*lineStage).priorityFree))
}
