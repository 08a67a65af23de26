package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// HandOver deletes a place in a way that tells whoever watches it that its
// holder has released it, and not died or given up: in one transaction its data
// is set, which only this session may do, and it is deleted. The event of the
// first uses up the watch.
//
// It is known, and repeated, on the terms of DeleteOwned, which it falls back to
// where the data may not be set.
func (s *Session) HandOver(place Place) <-chan error {
	done := make(chan error, 1)
	if !s.Background(func(life context.Context) { done <- s.handOver(life, place) }) {
		done <- s.Err()
	}
	return done
}

func (s *Session) handOver(life context.Context, place Place) error {
	r := request{opMulti, s.handOverBody(place)}
	for sent := false; ; {
		now, _, _ := s.status.Get()
		if _, err := s.Connected(life); err != nil {
			return s.Err()
		}
		replies, err := s.exchangeIdentified(life, r)
		if err == nil {
			err = replies[0].multi()
		}
		switch {
		case err == nil:
			return nil
		case s.Err() != nil:
			return s.Err()
		case errors.Is(err, zk.ErrNoNode):
			if sent {
				return nil
			}
			return fmt.Errorf("hand over %s: %w", place.Path, recipes.ErrNoNode)
		case !lostConnection(err):
			s.log.Debug("cannot hand over; deleting", "path", place.Path, "error", err)
			s.CountFallback()
			deletion := s.deleteOwned(life, place.Path, place.Stat)
			if errors.Is(err, zk.ErrNoAuth) && deletion == nil {
				s.wire.refused.Store(true) // it was ours, and we may not write to it
			}
			return deletion
		}
		sent = true
		if _, err := s.connectedAfter(life, now.connections); err != nil {
			return s.Err()
		}
		stat, err := s.Stat(life, place.Path)
		switch {
		case errors.Is(err, recipes.ErrNoNode), err == nil && stat.Czxid != place.Stat.Czxid:
			return nil
		case err != nil:
			return err
		}
	}
}

func (s *Session) handOverBody(place Place) []byte {
	full := s.full(place.Path)
	var e encoder
	e.opHeader(opSetData, false, -1)
	e.str(full)
	e.i32(0) // no data
	e.i32(place.Stat.Version)
	e.opHeader(opDelete, false, -1)
	e.str(full)
	e.i32(place.Stat.Version + 1)
	e.opHeader(-1, true, -1)
	return e.b
}

// multi is the first error among the results of a transaction.
func (r reply) multi() error {
	if r.code != 0 {
		return r.err()
	}
	d := decoder{b: r.body}
	for d.err == nil {
		op, done := d.i32(), d.bool()
		d.i32()
		switch {
		case done:
			return d.err
		case op == -1:
			if code := d.i32(); code != 0 {
				return reply{code: code}.err()
			}
		case op == opSetData:
			d.stat()
		}
	}
	return d.err
}
