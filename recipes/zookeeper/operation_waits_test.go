package zookeeper_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A waiter reads, sets a watch, and waits. The awaited event may happen just before any of its
// requests, and the connection may be lost with that request, or the plugin killed. A watch that is
// set too late, or on a lost connection, reports no event. The waiter must still notice the event.
func TestAnAwaitedEventIsNoticedWheneverItHappens(t *testing.T) {
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range []fault{
				{name: "alone"},
				{name: "then the connection is lost", first: zkserver.Fault{CloseBefore: true}},
				{name: "then the reply to it is lost", first: zkserver.Fault{DropReply: true}},
				{name: "then the plugin is killed", first: zkserver.Fault{CloseBefore: true}, kills: true},
			} {
				on := onStage
				if f.kills {
					on = onPluginStage
				}
				for at, met := 1, true; met; at++ {
					on(t, func(s *stage) { met = o.happensAt(s, at, f) })
					if t.Failed() {
						t.Fatalf("request %d, %s", at, f.name)
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
func (o operation) happensAt(s *stage, at int, f fault) (met bool) {
	do := o.prepare(s)
	if do.happen == nil {
		return false
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
			if f.kills {
				s.kill()
			}
			return f.first
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
		if f.kills {
			s.kill() // nothing has changed for the next plugin
			s.resumes()
			synctest.Wait()
			s.kill() // the event happens without a plugin
		} else if f.first.CloseBefore { // on the next connection, the waiter has no watch until it reads again
			s.srv.CloseConnection(s.victim.ID())
		}
		s.fails("the awaited event", do.happen())
	}
	err := <-done
	if f.kills && errors.Is(err, recipes.ErrUnknownOutcome) { // a write that is not repeated has an unknown outcome
		s.started.Wait()
		return met
	}
	s.fails("the waiter", err)
	s.srv.SetFault(nil)
	if do.end != nil && err == nil {
		s.fails("at its end", do.end())
	}
	if do.after != nil {
		s.fails("then another", do.after())
	}
	s.started.Wait()
	return met
}
