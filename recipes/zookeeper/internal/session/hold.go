package session

import (
	"context"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// BeginHold notes that the session holds something more that no other client may get
// before the session's loss is reported: a lock, a leadership, a name, a membership.
// EndHold takes it back, once for each BeginHold.
//
// It is the one rule for every grant. It returns nil only while the leader is proved to
// keep the session for another quarter of its timeout. Where that is not proved, it
// sends syncs until it is. One is enough in a session that wrote a moment ago, two in
// one that has sent nothing but pings (see package lease).
//
// From then on the session's deadline counts from the last contact that the leader is
// proved to have, and the session asks the leader often enough to move that on.
//
// On an error nothing is held. The error is the session's loss, or ctx's.
func (s *Session) BeginHold(ctx context.Context) error {
	for asked := 0; ; asked++ {
		switch begun, err := s.beginProved(); {
		case err != nil || begun:
			return err
		case asked == 0:
			s.wire.Counters.Asked.Add(1)
		case asked > 1:
			// The contacts that the leader was asked about are too old to prove enough.
			// Younger ones count in a moment.
			if err := s.pause(ctx, s.lease.Interval()); err != nil {
				return err
			}
		}
		_, err := Insist(ctx, s, func() (struct{}, error) { return struct{}{}, s.Sync(ctx, "/") })
		if err != nil {
			return err
		}
	}
}

// beginProved begins a hold if the leader is proved to keep the session for long enough.
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

// PrepareProof is for a contender that has to wait. If the session's proof is old, it sends
// a sync that no goroutine waits for, so that a grant after a short wait finds its
// proof ready.
func (s *Session) PrepareProof() {
	if s.lease.Old() { // where it cannot be sent, the next connection begins with a contact that the leader has
		_, _ = s.wire.Sender().Send(conn.Sync(s.full("/")))
	}
}

// pause waits for d, or fails when ctx ends or the session is lost.
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

// EndHold is the end of what BeginHold has begun.
func (s *Session) EndHold() { s.lease.End() }

// confirm has the leader answer something at least every tenth of the timeout, until the
// session holds nothing. The session's other writes and syncs count. Inspect adds reads.
//
// Where a sync is not answered for a quarter of the timeout, the server may be cut off
// from the leader, and nothing else would show it. The session moves to another server
// then, while there is time for that.
func (s *Session) confirm() {
	sent := confirmation{at: time.Now()}
	timer := time.NewTimer(s.untilConfirmation(sent.at))
	defer timer.Stop()
	for answered := sent.answered(); ; {
		select {
		case <-timer.C:
		case <-answered:
			sent.report()
			answered = nil
			continue
		case <-s.Done():
			return
		}
		wait := s.untilConfirmation(sent.at)
		if wait <= 0 {
			if s.stopConfirming() {
				return
			}
			switch {
			case sent.batch == nil || sent.batch.Settled():
				sent = s.sendConfirmation()
				answered = sent.answered()
			case time.Since(sent.at) >= s.Timeout()/4:
				s.log.Warn("the leader does not answer; trying another server", "server", sent.batch.Conn.RemoteAddr())
				sent.batch.Conn.Close()
			default: // a second one before the first is answered would prove no more
			}
			wait = s.lease.Interval()
		}
		timer.Reset(wait)
	}
}

// untilConfirmation is how long nothing has to be sent; sent is when a confirmation was
// sent last.
func (s *Session) untilConfirmation(sent time.Time) time.Duration {
	since := s.lease.LastAsked()
	if s.inspecting() {
		since = sent
	}
	return time.Until(since.Add(s.lease.Interval()))
}

// stopConfirming reports whether there is nothing left to confirm for.
func (s *Session) stopConfirming() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirming = s.lease.Holds() > 0
	return !s.confirming
}

// GetOwn is Get for a znode of this session. It may read a bare znode whatever its ACL is, and
// the reply may be larger than SessionConfig.MaxPacket, for others may have stored more.
func (s *Session) GetOwn(ctx context.Context, path string) (Node, error) {
	return readWith(ctx, s, "read", path, func(r conn.Sender) (Node, error) {
		return r.Identified().Unbounded().Get(s.full(path), false)
	})
}
