package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// listing is the latest listing of a queue by one session. The session's consumers take
// elements out of it until it is exhausted. One consumer at a time fills it.
//
// A listing of a long queue is large, so it is not repeated for each element. With priorities, an
// event makes a consumer read only the queue's record, which counts the children ever created, and
// the claims, which are few. It lists the queue again if a child was created.
type listing struct {
	q       *queue // any queue with this key
	turn    chan struct{}
	checked atomic.Bool  // a put has checked for third-party elements
	size    atomic.Int64 // 0 until elements are read, then one more than the mean size of the latest, in bytes

	// Owned by the consumer whose turn it is:
	filled       bool
	elements     []queued
	again        []queued          // before elements, if they come first; in order
	claimed      map[string]queued // claimed by others; with priorities
	last         int32             // the number of the queue's last created child
	changed      *session.Watch    // the queue
	unclaimed    *session.Watch    // the claims; nil if there are none
	disconnected <-chan struct{}

	mu      sync.Mutex
	untaken []queued // popped, but not taken
	busy    []queued // popped, but claimed or changed by another consumer; with priorities
}

// shortListing is how many elements are listed again rather than revised. Revising may cost an
// extra read.
const shortListing = 16

func (q *queue) newListing() *listing {
	return &listing{q: q, turn: make(chan struct{}, 1)}
}

// giveBack puts an element back that was popped and may still be in the queue. (In kazoo PR 501,
// a failed take blocked although elements remained.)
func (l *listing) giveBack(e queued) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.untaken = append(l.untaken, e)
}

// isBusy records that another consumer has claimed a popped element. It may be returned.
func (l *listing) isBusy(e queued) {
	if !l.q.priority {
		return // the next listing contains the element
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = append(l.busy, e)
}

// pop takes the next elements out of the listing, at most n. If wait is set, it fills the listing if
// needed, and waits for a watch while there is no element. If not, it returns only what is listed:
// after a new listing, an element could be in a batch twice.
func (l *listing) pop(ctx context.Context, n int, wait bool) ([]queued, error) {
	for {
		popped, events, err := l.next(ctx, n, wait)
		if err != nil || events == nil {
			return popped, err
		}
		if err := l.q.Session.Wait(ctx, "waiting for an element", events...); err != nil {
			return nil, err
		}
	}
}

func (l *listing) next(ctx context.Context, n int, fill bool) (popped []queued, events []<-chan struct{}, err error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-l.q.Session.Done():
		return nil, nil, l.q.Session.Err()
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("waiting to list: %w", ctx.Err())
	}
	if fill {
		if err := l.update(ctx); err != nil {
			return nil, nil, err
		}
	}
	for len(popped) < n && l.filled {
		e, ok := l.first()
		if !ok {
			break
		}
		popped = append(popped, e)
	}
	if fill && len(popped) == 0 {
		events = l.events()
	}
	return popped, events, nil
}

// window returns how many elements to read at once: as many as probably fit into a packet. The
// size of the first ones is unknown.
func (l *listing) window(packet int) int {
	size := int(l.size.Load())
	if size == 0 {
		return shortListing
	}
	return max(1, min(packet/size, session.ReadsAtOnce))
}

// first takes the first element out of the listing.
func (l *listing) first() (e queued, ok bool) {
	from := &l.elements
	if len(l.again) > 0 && (len(l.elements) == 0 || compareQueued(l.again[0], l.elements[0]) <= 0) {
		from = &l.again
	}
	if len(*from) == 0 {
		return queued{}, false
	}
	e, *from = (*from)[0], (*from)[1:]
	if len(l.elements)+len(l.again) == 0 {
		l.filled = false // the listing is exhausted; the queue was not found empty
	}
	return e, true
}

// update fills the listing if it was never filled, is exhausted, or was found empty and an event
// has happened. With priorities, every event makes it revise the listing. The plain queue uses
// its listing to the end, as its text says.
func (l *listing) update(ctx context.Context) error {
	l.takeBack()
	if l.filled {
		if !slices.ContainsFunc(l.events(), session.Happened) {
			return nil
		}
		if len(l.elements)+len(l.again) > 0 {
			if !l.q.priority {
				return nil
			}
			if len(l.elements) > shortListing {
				if complete, err := l.revise(ctx); complete || err != nil {
					return err
				}
			}
		}
	}
	l.filled = false // before an error is returned: another consumer may have the next turn
	if err := l.fill(ctx); err != nil {
		return err
	}
	l.filled = true
	return nil
}

// takeBack moves what the consumers have not taken to again and claimed.
func (l *listing) takeBack() {
	l.mu.Lock()
	untaken, busy := l.untaken, l.busy
	l.untaken, l.busy = nil, nil
	l.mu.Unlock()
	for _, e := range untaken {
		l.tryAgain(e)
	}
	for _, e := range busy {
		l.claimed[e.Name] = e
	}
}

func (l *listing) tryAgain(e queued) {
	at, _ := slices.BinarySearchFunc(l.again, e, compareQueued)
	l.again = slices.Insert(l.again, at, e)
}

// revise brings a listing up to date after an event, without listing the queue. complete is false
// if the queue must be listed: if a child was created, or events may have been missed.
func (l *listing) revise(ctx context.Context) (complete bool, err error) {
	s := l.q.Session
	if session.Happened(l.disconnected) {
		return false, nil
	}
	if session.Happened(l.changed.Fired()) { // the watch remains fired, because only a listing can set it
		stat, err := s.Stat(ctx, l.q.Path())
		switch last := session.LastNumber(stat); {
		case errors.Is(err, recipes.ErrNoNode):
			return false, nil
		case err != nil:
			return false, err
		case last != l.last, last >= math.MaxInt32-1: // at the largest number servers no longer count
			return false, nil
		}
	}
	if l.unclaimed == nil || !session.Happened(l.unclaimed.Fired()) {
		return true, nil
	}
	claims, unclaimed, err := s.ChildrenW(ctx, l.q.Child(claimsName))
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return false, err
	}
	l.unclaimed = unclaimed // nil without claims: their parent is created below the queue
	l.reclaim(claims)
	return true, nil
}

// reclaim makes the elements whose claims have ended available again. Most of them were
// acknowledged, which a consumer finds out by a read.
func (l *listing) reclaim(claims []string) {
	now := claimedNames(claims)
	for name, e := range l.claimed {
		if !now[name] {
			l.tryAgain(e)
			delete(l.claimed, name)
		}
	}
	for name := range now {
		if _, known := l.claimed[name]; !known {
			for _, e := range l.q.parse([]string{name}) {
				l.claimed[name] = e
			}
		}
	}
}

// events are the events after which the listing may be wrong: those of its watches, and the
// end of the connection, after which events may be missed.
func (l *listing) events() []<-chan struct{} {
	events := []<-chan struct{}{l.changed.Fired(), l.disconnected}
	if l.unclaimed != nil {
		events = append(events, l.unclaimed.Fired())
	}
	return events
}

// fill lists the queue and its claims, with watches. If every listed element is claimed, one
// of the two watches fires when that changes: a put fires the first, and the end of a claim
// fires the second.
func (l *listing) fill(ctx context.Context) error {
	q, s := l.q, l.q.Session
	l.elements, l.again, l.claimed = nil, nil, make(map[string]queued) // the listing contains them
	for {
		disconnected, err := s.Connected(ctx)
		if err != nil {
			return err
		}
		names, parent, changed, err := znode.ListW(ctx, s, q.Path())
		if errors.Is(err, znode.ErrReadAgain) {
			continue
		}
		if err == nil {
			err = q.foreign(names)
		}
		if err != nil {
			return err
		}
		var claims []string
		var unclaimed *session.Watch
		if slices.Contains(names, claimsName) {
			claims, unclaimed, err = s.ChildrenW(ctx, q.Child(claimsName))
			if err != nil && !errors.Is(err, recipes.ErrNoNode) {
				return err
			}
		}
		l.reclaim(claims)
		l.elements = slices.DeleteFunc(q.parse(names), func(e queued) bool { _, claimed := l.claimed[e.Name]; return claimed })
		l.last = session.LastNumber(parent)
		l.changed, l.unclaimed, l.disconnected = changed, unclaimed, disconnected
		return nil
	}
}

// claimedNames returns the names of the elements that are claimed.
func claimedNames(claims []string) map[string]bool {
	claimed := make(map[string]bool, len(claims))
	for _, c := range claims {
		if at := strings.LastIndexByte(c, '-'); at > 0 {
			claimed[c[:at]] = true
		}
	}
	return claimed
}

type listingKey struct {
	path     string
	priority bool
	dialect  recipes.Dialect
}

// mostListings is how many listings a session keeps. If there are more, it forgets all: a
// long-lived session may use each of its paths only once. A consumer keeps the listing
// that it has.
const mostListings = 4096

// listingOf returns the listing that q shares with the session's other consumers.
func (qs *Queues) listingOf(q *queue) *listing {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	key := listingKey{q.Path(), q.priority, q.cfg.Dialect}
	l := qs.listings[key]
	if l == nil {
		l = q.newListing()
		if qs.listings == nil || len(qs.listings) >= mostListings {
			qs.listings = make(map[listingKey]*listing)
		}
		qs.listings[key] = l
	}
	return l
}
