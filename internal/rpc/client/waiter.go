package client

import (
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A waiter is a call that waits for its grant, and for the place where its contender has joined.
type waiter struct {
	joined  func(recipes.Place) // may be nil
	once    sync.Once
	telling sync.WaitGroup // while the call goes on

	turns chan turn // holds one: the latest that resumePossessions has offered
	anew  bool      // it takes a turn also without a znode: DropRest would undo what it does
	had   *pb.Grant // the place that the call has to resume, or nil

	// Under the session's mu:
	on    *generation // in which the call is made; nil when it has returned
	znode string      // that it waits with, if that is known
	at    *generation // whose plugin knows it, or has answered it
	took  func()      // tells resumePossessions so; may be nil
}

// A turn is offered to a call whose contender can be resumed in a generation.
type turn struct {
	in   *generation
	done chan struct{} // to be closed when it was, or will not be
}

func (w *waiter) tell(p recipes.Place) {
	if w.joined != nil {
		w.once.Do(func() { w.joined(p) })
	}
}

// offer offers a turn, in the place of one that nobody waits for any more. It needs the
// session's mu: a call that has left before is offered nothing.
func (w *waiter) offer(t turn) {
	select {
	case <-w.turns:
	default:
	}
	w.turns <- t
}

// begins notes in which generation the call is made, and forgets its place unless it was
// offered a turn to take that up.
func (s *session) begins(w *waiter, t *generation, offered *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.on, w.took, w.had = t, nil, nil
	if offered == nil {
		w.znode = ""
		return
	}
	w.took, w.had = sync.OnceFunc(func() { close(offered.done) }), &pb.Grant{Znode: w.znode}
}

// placed notes where the contender stands, as the plugin of a generation says, and tells the
// application. It is told in a goroutine of its own. It may make a call of the session, and
// if the plugin dies, that call waits until resumePossessions has seen this one again.
func (s *session) placed(w *waiter, t *generation, p recipes.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.on != t {
		return // the call has returned, and its answer has the place
	}
	w.znode = p.Znode
	w.settle()
	if w.joined != nil {
		w.telling.Go(func() { w.tell(p) })
	}
}

// settle notes that the plugin knows of the contender, or does not need to. It needs the
// session's mu.
func (w *waiter) settle() {
	w.at = w.on
	if w.took != nil {
		w.took()
	}
}

// answered notes that the call has returned.
func (s *session) answered(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.settle()
	w.on = nil
}

// expect has resumePossessions offer turns to a waiter, until unexpect.
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

// joined tells a place to the call that waits for it, if it still does.
func (s *session) joined(t *generation, id string, p recipes.Place) {
	s.mu.Lock()
	w := s.waiters[id]
	s.mu.Unlock()
	if w != nil {
		s.placed(w, t, p)
	}
}

// place finds out, after the call, where the contender had joined.
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
