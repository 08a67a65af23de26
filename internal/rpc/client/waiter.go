package client

import (
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A waiter is a call that waits for its grant, and for the place at which its contender
// joined.
type waiter struct {
	joined    func(recipes.Place) // may be nil
	once      sync.Once
	notifying sync.WaitGroup // calls of joined while the call continues

	turns   chan turn // holds one: the latest turn that resumePossessions offered
	always  bool      // it is offered turns even without a znode: DropRest would undo the call's effect
	resumed *pb.Grant // the place to resume, or nil

	// Under the session's mu:
	on       *generation // the generation of the call; nil when it has returned
	znode    string      // the contender's znode, if known
	at       *generation // the generation whose plugin has the contender, or has answered the call
	turnDone func()      // notifies resumePossessions; may be nil
}

// A turn is offered to a call whose contender can be resumed in a generation.
type turn struct {
	in   *generation
	done chan struct{} // the call closes it when the contender was resumed, or will not be
}

func (w *waiter) notify(p recipes.Place) {
	if w.joined != nil {
		w.once.Do(func() { w.joined(p) })
	}
}

// offer offers a turn, replacing one that was not taken. The caller holds the session's mu,
// so a call that has returned is offered nothing.
func (w *waiter) offer(t turn) {
	select {
	case <-w.turns:
	default:
	}
	w.turns <- t
}

// begins records the generation in which the call is made. The call drops its place, unless
// it was offered a turn to resume it.
func (s *session) begins(w *waiter, t *generation, offered *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.on, w.turnDone, w.resumed = t, nil, nil
	if offered == nil {
		w.znode = ""
		return
	}
	w.turnDone, w.resumed = sync.OnceFunc(func() { close(offered.done) }), &pb.Grant{Znode: w.znode}
}

// placed records the contender's place, as reported by the plugin of a generation, and
// notifies the application in a separate goroutine. The callback may make a call of the
// session. If the plugin dies, that call waits until resumePossessions has checked this
// waiter again.
func (s *session) placed(w *waiter, t *generation, p recipes.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.on != t {
		return // the call has returned, and its answer has the place
	}
	w.znode = p.Znode
	w.settle()
	if w.joined != nil {
		w.notifying.Go(func() { w.notify(p) })
	}
}

// settle records that the plugin has the contender, or that the call has returned. The caller
// holds the session's mu.
func (w *waiter) settle() {
	w.at = w.on
	if w.turnDone != nil {
		w.turnDone()
	}
}

// returned records that the call has returned.
func (s *session) returned(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.settle()
	w.on = nil
}

// expect makes resumePossessions offer turns to a waiter, until unexpect.
func (s *session) expect(id string, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters[id] = w
}

func (s *session) unexpect(id string, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiters, id)
	select {
	case t := <-w.turns:
		close(t.done)
	default:
	}
}

// joined passes a place to the call with that request id, if it still waits.
func (s *session) joined(t *generation, id string, p recipes.Place) {
	s.mu.Lock()
	w := s.waiters[id]
	s.mu.Unlock()
	if w != nil {
		s.placed(w, t, p)
	}
}

// place returns the place at which the contender joined, from the call's answer or error.
func place(a answer, err error) (recipes.Place, bool) {
	if err != nil {
		return wire.PlaceOf(err)
	}
	p, ok := a.(interface{ GetPlace() *pb.Place })
	if !ok || p.GetPlace() == nil {
		return recipes.Place{}, false
	}
	return wire.Place(p.GetPlace()), true
}
