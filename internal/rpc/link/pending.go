package link

import (
	"sync"
	"sync/atomic"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A pendingCall is a call that creates something which DropRest would delete. If its plugin ends,
// resumePossessions offers it to the next one before DropRest.
type pendingCall struct {
	joined    func(recipes.Place) // gets the place at which the contender joined; may be nil
	notified  atomic.Bool
	notifying sync.WaitGroup // calls of joined while the call continues

	offers   chan offer // holds one: the latest of resumePossessions
	unplaced bool       // it gets offers even if no place is known
	resumed  *pb.Grant  // the place to resume, or nil

	// Under the session's mu:
	on        *generation // the generation of the call; nil when it has returned
	znode     string      // the contender's znode, if known
	at        *generation // the generation whose plugin has the contender, or has answered the call
	offerDone func()      // notifies resumePossessions; may be nil
}

func newPendingCall(joined func(recipes.Place), unplaced bool) *pendingCall {
	return &pendingCall{joined: joined, offers: make(chan offer, 1), unplaced: unplaced}
}

// An offer lets a call resume its contender in a generation.
type offer struct {
	in   *generation
	done chan struct{} // the call closes it when the contender was resumed, or will not be
}

// replaceOffer makes an offer, instead of one that was not taken. The caller holds the session's
// mu, so a call that has returned gets none.
func (c *pendingCall) replaceOffer(o offer) {
	select {
	case <-c.offers:
	default:
	}
	c.offers <- o
}

// callBegun records the generation in which the call is made. The call drops its place, unless it
// was offered to resume it.
func (s *Session) callBegun(c *pendingCall, gen *generation, taken *offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.on, c.offerDone, c.resumed = gen, nil, nil
	if taken == nil {
		c.znode = ""
		return
	}
	c.offerDone, c.resumed = sync.OnceFunc(func() { close(taken.done) }), &pb.Grant{Znode: c.znode}
}

// placed records the contender's place, and notifies the application in a separate goroutine. The
// place arrives with each part of the answer, and with that of a repeated call; only the first
// counts for the application. The callback may make a call of the session. If the plugin dies,
// that call waits until resumePossessions has checked this one again. Meanwhile a later report of
// the place waits for nothing.
func (s *Session) placed(c *pendingCall, p recipes.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.znode = p.Znode
	c.settle()
	if c.joined != nil {
		c.notifying.Go(func() { c.notify(p) })
	}
}

func (c *pendingCall) notify(p recipes.Place) {
	if c.joined != nil && c.notified.CompareAndSwap(false, true) {
		c.joined(p)
	}
}

// settle records that the plugin has the contender, or that the call has returned. The caller
// holds the session's mu.
func (c *pendingCall) settle() {
	c.at = c.on
	if c.offerDone != nil {
		c.offerDone()
	}
}

func (s *Session) callReturned(c *pendingCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.settle()
	c.on = nil
}

// addPending makes resumePossessions offer the call, until removePending.
func (s *Session) addPending(id string, c *pendingCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[id] = c
}

func (s *Session) removePending(id string, c *pendingCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, id)
	select {
	case o := <-c.offers:
		close(o.done)
	default:
	}
}
