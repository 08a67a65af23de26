package zookeeper_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// A waiter reads, sets a watch, and waits. The awaited event may happen just before any of its
// requests, and the connection may be lost with that request. A watch that is set too late, or
// on a lost connection, reports no event. The waiter must notice the event all the same.
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

// happensAt causes the awaited event just before the waiter's request number at, and then
// injects the fault at that request. If there is no such request, it causes the event when the
// waiter sends nothing more, and returns false. At writes it injects no fault: the fault sweep
// tests writes without an answer.
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
			s.fails("the awaited event", do.happen())
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
			if fault.CloseBefore { // on the next connection, the waiter has no watch until it reads again
				s.srv.CloseConnection(s.victim.ID())
			}
			s.fails("the awaited event", do.happen())
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
