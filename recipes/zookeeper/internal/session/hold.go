package session

import (
	"context"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// BeginHold begins a hold: a lock, a leadership, a name or a membership, which no other client
// may get before this session reports its loss. Call EndHold once for each BeginHold that
// succeeded.
//
// This is the one rule for every grant: BeginHold succeeds only if the leader is proved to keep
// the session for another quarter of its timeout. If the proof is too old, it sends syncs until
// the proof is good. One sync is enough if the session has just written, two if it has sent
// only pings (see package lease).
//
// While the session holds something, its deadline counts from the last contact that the leader
// is proved to have received. The session sends leading requests often enough to renew that
// proof.
//
// On error nothing is held. The error is the session's loss, or ctx's.
func (s *Session) BeginHold(ctx context.Context) error {
	for asked := 0; ; asked++ {
		switch begun, err := s.beginProved(); {
		case err != nil || begun:
			return err
		case asked == 0:
			s.wire.Counters.Asked.Add(1)
		case asked > 1:
			// These syncs have proved only contacts that are too old. A later contact can be
			// proved when it is no longer young: see lease.Evidence.
			if err := s.pause(ctx, s.lease.Interval()); err != nil {
				return err
			}
		}
		_, err := RetryThrottled(ctx, s, func() (struct{}, error) { return struct{}{}, s.Sync(ctx, "/") })
		if err != nil {
			return err
		}
	}
}

func (s *Session) beginProved() (begun bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false, context.Cause(s.ctx)
	}
	if !s.lease.Begin() {
		return false, nil
	}
	if !s.confirming {
		s.confirming = true
		s.calls.Go(s.confirm)
	}
	return true, nil
}

// PrepareProof is called when a contender has to wait. If the session's proof is old, it sends
// a sync without waiting for the answer, so that a grant after a short wait needs no request.
func (s *Session) PrepareProof() {
	if s.lease.Old() { // if sending fails, the handshake of the next connection is a proof
		s.start(func() { _, _ = s.wire.Current().Send(conn.Sync(s.full("/"))) })
	}
}

// pause waits for d. It fails when ctx is done or the session is lost.
func (s *Session) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.Done():
		return s.Err()
	case <-ctx.Done():
		return s.Interrupted("asking the leader", ctx)
	}
}

// ProvedUntil returns the deadline while the session holds something.
func (s *Session) ProvedUntil() time.Time { return s.lease.ProvedUntil() }

// EndHold ends a hold that BeginHold has begun.
func (s *Session) EndHold() { s.lease.End() }

// confirm sends a leading request at least every tenth of the timeout, until the session holds
// nothing. The session's other writes and syncs count once they are answered. If inspections are due,
// confirm also sends those: see Inspect.
//
// If a sync is not answered, the server may be cut off from the leader. Only the missing answer
// shows that. So the session moves to another server while there is time. It checks a tenth of the
// timeout at a time, and moves at the first check that is a quarter of the timeout after the sync.
func (s *Session) confirm() {
	sync, at := (*conn.Batch)(nil), time.Now() // the last confirmation; nil if it could not be sent
	var reads *reading
	timer := time.NewTimer(s.untilConfirmation(at))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			s.lease.Check() // its own timer is late after a suspension
		case <-reads.answered():
		case <-s.Done():
			return
		}
		if reads.settled() {
			s.inspections.report(reads)
			reads = nil
		}
		wait := s.untilConfirmation(at)
		if wait <= 0 {
			if s.stopConfirming() {
				return
			}
			switch {
			case sync == nil || sync.Settled():
				at = time.Now()
				sync, _ = s.wire.Current().Send(conn.Sync(s.full("/")))
				if reads == nil { // otherwise the server is slow
					reads = s.sendInspections()
				}
			case time.Since(at) >= s.Timeout()/4 && s.Continues() == nil: // otherwise moving would lose the session
				s.log.Warn("the leader does not answer; trying another server", "server", sync.Conn.RemoteAddr())
				sync.Conn.Close()
			default: // a second sync before the first is answered would prove nothing more
			}
			wait = time.Until(s.together(time.Now().Add(s.lease.Interval())))
		}
		timer.Reset(wait)
	}
}

// untilConfirmation returns how long no leading request is needed. sent is when the last
// confirmation was sent.
func (s *Session) untilConfirmation(sent time.Time) time.Duration {
	since := s.lease.LastAsked()
	if s.inspections.waiting() {
		since = sent
	}
	return time.Until(s.together(since.Add(s.lease.Interval())))
}

// instants is how many times per interval the sessions of a host send their confirmations.
const instants = 8

// together returns the latest of the host's instants for confirmations that is not after due. The
// sessions of a process then wake it together, and the server too. That takes half the processor
// time of a thousand sessions that wake by themselves. Hosts have instants of their own, so that
// the server does not get the confirmations of all of them at once.
func (s *Session) together(due time.Time) time.Time {
	spacing := int64(s.lease.Interval()) / instants
	if spacing == 0 {
		return due
	}
	return due.Add(-time.Duration((due.UnixNano() + s.wire.Current().Phase()) % spacing))
}

// stopConfirming reports whether the session holds nothing, so that confirm must return.
func (s *Session) stopConfirming() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirming = s.lease.Holds() > 0
	return !s.confirming
}

// GetOwn reads a znode of this session. It sends the identity first, so that the session may read
// its bare znodes whatever their ACL. The reply may be larger than SessionConfig.MaxPacket, because other clients may
// have stored more.
func (s *Session) GetOwn(ctx context.Context, path string) (Node, error) {
	return ask(ctx, s, "read", path, conn.Get(s.full(path), false).Identified().Unbounded(), conn.Reply.Node)
}
