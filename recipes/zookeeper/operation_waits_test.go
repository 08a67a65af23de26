package zookeeper_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// Whoever waits for something looks, arms a watch, and waits. What it waits for may
// happen just before any of its requests, and before or after its connection is lost
// with that request. It must notice, whenever that is: a watch that is armed too late, or
// on a connection that is lost, tells nothing.
func TestAnAwaitedEventIsNoticedWheneverItHappens(t *testing.T) {
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			for what, fault := range map[string]zkserver.Fault{
				"alone":                        {},
				"then the connection is lost":  {CloseBefore: true},
				"then the reply to it is lost": {DropReply: true},
			} {
				for at, met := 1, true; met; at++ {
					if met = o.happensAt(t, at, fault); t.Failed() {
						t.Fatalf("request %d, %s", at, what)
					}
				}
			}
		})
	}
}

// happensAt has it happen just before that request of the waiter, to which then the fault
// happens. It returns false where there is no such request, so that it happens when the
// waiter sends nothing more. Of writes only the first fault is tried. The fault sweep has
// writes that get no answer.
func (o operation) happensAt(t *testing.T, at int, fault zkserver.Fault) (met bool) {
	onStage(t, func(s *stage) {
		do := o.prepare(s)
		if do.happen == nil {
			return
		}
		var mu sync.Mutex
		n, reached := 0, false
		s.srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID != s.victim.ID() || r.Op == zkserver.OpSync {
				return zkserver.Fault{}
			}
			mu.Lock()
			n++
			now := n == at
			reached = reached || now
			mu.Unlock()
			if !now {
				return zkserver.Fault{}
			}
			s.fails("what is waited for", do.happen())
			switch r.Op {
			case zkserver.OpExists, zkserver.OpGetData, zkserver.OpGetChildren, zkserver.OpGetChildren2:
				return fault
			}
			return zkserver.Fault{}
		})
		done := make(chan error, 1)
		go func() { done <- do.act(s.ctx) }()
		synctest.Wait()
		mu.Lock()
		met = reached
		mu.Unlock()
		if !met {
			s.srv.SetFault(nil)
			if fault.CloseBefore { // the waiter has no watch on the next connection before it looks
				s.srv.CloseConnection(s.victim.ID())
			}
			s.fails("what is waited for", do.happen())
		}
		err := <-done
		s.fails("the waiter", err)
		s.srv.SetFault(nil)
		if do.end != nil && err == nil {
			s.fails("at its end", do.end())
		}
		if do.after != nil {
			s.fails("then another", do.after())
		}
		s.started.Wait()
	})
	return met
}
