package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// listing is the latest listing of a queue by one session. The session's consumers take
// elements out of it until it is exhausted. One consumer at a time fills it.
type listing struct {
	q       *queue // any queue with this key
	turn    chan struct{}
	dirty   atomic.Bool // an element was taken out of the listing, but may still be in the queue
	checked atomic.Bool // a put has checked for third-party elements

	// Owned by the consumer that has the turn:
	filled       bool
	elements     []queued
	changed      *session.Watch // the queue
	unclaimed    *session.Watch // the claims; nil if there are none
	disconnected <-chan struct{}
}

func (q *queue) newListing() *listing {
	return &listing{q: q, turn: make(chan struct{}, 1)}
}

// pop takes the next element out of the listing, and fills the listing if needed.
// While there is no element it waits for a watch.
func (l *listing) pop(ctx context.Context) (queued, error) {
	for {
		e, wait, err := l.next(ctx)
		if err != nil || wait == nil {
			return e, err
		}
		if err := wait(); err != nil {
			return queued{}, err
		}
	}
}

func (l *listing) next(ctx context.Context) (e queued, wait func() error, err error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-l.q.Session.Done():
		return queued{}, nil, l.q.Session.Err()
	case <-ctx.Done():
		return queued{}, nil, fmt.Errorf("waiting to list: %w", ctx.Err())
	}
	if l.outdated() {
		l.filled = false // before an error is returned: another consumer may have the next turn
		if err := l.fill(ctx); err != nil {
			return queued{}, nil, err
		}
		l.filled = true
	}
	if len(l.elements) > 0 {
		e, l.elements = l.elements[0], l.elements[1:]
		if len(l.elements) == 0 {
			l.filled = false // it is exhausted; the queue was not found empty
		}
		return e, nil, nil
	}
	events := l.events()
	return queued{}, func() error { return l.q.Session.Wait(ctx, "waiting for an element", events...) }, nil
}

// outdated reports whether the listing has to be filled: it was never filled, is exhausted,
// or was found empty and an event has happened. With priorities, every event makes it
// outdated. The plain queue uses its listing to the end, as its text says.
func (l *listing) outdated() bool {
	dirty := l.dirty.Swap(false)
	if dirty || !l.filled {
		return true
	}
	return (l.q.priority || len(l.elements) == 0) && slices.ContainsFunc(l.events(), session.Happened)
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
	for {
		disconnected, err := s.Connected(ctx)
		if err != nil {
			return err
		}
		names, changed, err := znode.ListW(ctx, s, q.Path())
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
		l.elements = slices.DeleteFunc(q.parse(names), claimedBy(claims))
		l.changed, l.unclaimed, l.disconnected = changed, unclaimed, disconnected
		return nil
	}
}

func claimedBy(claims []string) func(queued) bool {
	claimed := make(map[string]bool, len(claims))
	for _, c := range claims {
		if at := strings.LastIndexByte(c, '-'); at > 0 {
			claimed[c[:at]] = true
		}
	}
	return func(e queued) bool { return claimed[e.Name] }
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
