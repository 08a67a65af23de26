package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	done := s.inside(&s.readers)
	err = guarded(ctx, h)
	done()
	return errors.Join(err, giveBack(h.Release))
}

func priorityWriteAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h, err := s.priority(s.victim, joined, func(c *recipes.PriorityLockConfig) { c.Ask = true }).AcquireWrite(ctx)
	if err != nil {
		return err
	}
	done := s.inside(&s.writers)
	err = guarded(ctx, h)
	done()
	return errors.Join(err, giveBack(h.Release))
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
		s.t.Errorf("priority %d came before the heir", first)
	}
	return errors.Join(guardedError(handed), released)
}

func heirAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h := must[recipes.PriorityHold](s.t)(s.priority(s.other, nil).AcquireWrite(bounded(s.t)))
	place := make(chan recipes.Place, 1)
	heirs := s.priority(s.victim, func(p recipes.Place) { joined(p); place <- p }, func(c *recipes.PriorityLockConfig) { c.Priority = 9 })
	ended := make(chan error, 1)
	go func() {
		g, err := heirs.AcquireWrite(ctx)
		if err == nil {
			done := s.inside(&s.writers)
			err = guarded(ctx, g)
			done()
			err = errors.Join(err, giveBack(g.Release))
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
// session is not closed: no znode, and no heir who has left.
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

var priorityActs = []struct {
	name  string
	act   lineAct
	holds lineHolds
}{
	{"read/free", priorityReadAct, nil},
	{"read/behind a writer", priorityReadAct, holdPriority},
	{"write/free", priorityWriteAct, nil},
	{"write/behind a writer", priorityWriteAct, holdPriority},
	{"try/free", priorityTryAct, nil},
	{"try/behind a writer", priorityTryAct, holdPriority},
	{"hand-off", handOffAct, nil},
	{"heir", heirAct, nil},
}

func TestFaultSweepOfThePriorityLock(t *testing.T) {
	var cases atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for _, a := range priorityActs {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				requests := actCase(t, a.act, a.holds, (*lineStage).priorityFree, 0, nil, nil)
				if requests < 5 {
					t.Fatalf("the clean run made only %d requests", requests)
				}
				for at := int64(1); at <= requests; at++ {
					for _, f := range faults {
						t.Run(fmt.Sprintf("%s %d", f.name, at), func(t *testing.T) {
							cases.Add(1)
							actCase(t, a.act, a.holds, (*lineStage).priorityFree, at, f.at, f.may)
						})
					}
				}
			})
		}
	})
	fmt.Printf("fault sweep of the priority lock: %d cases\n", cases.Load())
}

// What it costs, as the README says, and that waiting costs nothing.
func TestCostsOfAPriorityLock(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, srv)
	l := must[recipes.PriorityLock](t)(s.PriorityLock("/cost", recipes.PriorityLockConfig{Priority: 5}))
	if err := must[recipes.PriorityHold](t)(l.AcquireWrite(ctx)).Release(ctx); err != nil { // makes the path
		t.Fatal(err)
	}
	before := srv.Counters()
	h := must[recipes.PriorityHold](t)(l.AcquireWrite(ctx))
	if d := srv.Counters().Sub(before); d.Writes != 2 || d.Reads != 4 {
		t.Errorf("a grant costs %d writes, %d reads; want 2, 4", d.Writes, d.Reads)
	}
	var waiting []recipes.Session
	granted := make(chan recipes.PriorityHold, 3)
	var last recipes.Place
	for i := range 3 {
		waiting = append(waiting, open(t, srv))
		place := make(chan recipes.Place, 1)
		w := must[recipes.PriorityLock](t)(waiting[i].PriorityLock("/cost", recipes.PriorityLockConfig{Priority: i, Joined: func(p recipes.Place) { place <- p }}))
		go func() {
			if h, err := w.AcquireWrite(ctx); err == nil {
				granted <- h
			}
		}()
		last = <-place
	}
	idles(t, srv)
	before = srv.Counters()
	if err := h.HandOff(ctx, last.Znode); err != nil {
		t.Fatal(err)
	}
	h = <-granted
	idles(t, srv)
	d := srv.Counters().Sub(before)
	t.Logf("a hand-off with three waiting: %d writes, %d reads, %d events", d.Writes, d.Reads, d.WatchEvents)
	if h.Znode() != strings.Replace(last.Znode, "write", "writing", 1) {
		t.Errorf("%s was granted; the heir was %s", h.Znode(), last.Znode)
	}
	if err := h.Release(ctx); err != nil {
		t.Fatal(err)
	}
	<-granted
	layout := lineLayout(srv, "/cost")
	for i := range layout {
		layout[i] = lineNumbers.ReplaceAllString(layout[i], "N")
	}
	if want := []string{"/cost", "/cost/_c_GUID-writing-00-N", "/cost/_c_GUID-write-01-N"}; !slices.Equal(layout, want) {
		t.Errorf("the tree is %q; want %q", layout, want)
	}
}

// Readers that are let in together do not refuse each other's claims.
func TestReadersClaimTogether(t *testing.T) {
	const readers = 8
	srv, ctx := embedded(t), bounded(t)
	l := must[recipes.PriorityLock](t)(open(t, srv).PriorityLock("/together", recipes.PriorityLockConfig{}))
	h := must[recipes.PriorityHold](t)(l.AcquireWrite(ctx))
	granted := make(chan recipes.PriorityHold, readers)
	for range readers {
		place := make(chan recipes.Place, 1)
		r := must[recipes.PriorityLock](t)(open(t, srv).PriorityLock("/together", recipes.PriorityLockConfig{Joined: func(p recipes.Place) { place <- p }}))
		go func() {
			if h, err := r.AcquireRead(ctx); err == nil {
				granted <- h
			}
		}()
		<-place
	}
	idles(t, srv)
	before := srv.Counters()
	if err := h.Release(ctx); err != nil {
		t.Fatal(err)
	}
	for range readers {
		<-granted
	}
	if d := srv.Counters().Sub(before); d.Writes != 1+readers || d.WatchEvents != 2*readers {
		t.Errorf("%d readers were let in with %d writes and %d events; want one write and two events (the writer's znode, and the own, which the claim deletes) for each, and the release", readers, d.Writes, d.WatchEvents)
	}
}
