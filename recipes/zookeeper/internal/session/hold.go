package session

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// BeginHold says that the session holds something more that nobody else may be
// given before the session's loss is told: a lock, a leadership, a name, a
// membership. EndHold takes it back, once for each BeginHold.
//
// In between, the session's deadline counts from the last contact that the leader
// is known to have, and the leader is asked often enough to know. The first
// contact is one that the leader has had the time to ask for.
func (s *Session) BeginHold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds.Add(1)
	if s.over || s.holds.Load() > 1 {
		return
	}
	s.wire.know(s.oldContact())
	s.deadline.Reset(s.left())
	if !s.confirming {
		s.confirming = true
		s.calls.Go(s.confirm)
	}
}

// EndHold is the end of what BeginHold has begun.
func (s *Session) EndHold() { s.holds.Add(-1) }

func (s *Session) holding() bool { return s.holds.Load() > 0 }

// confirm has the leader answer something at least every tenth of the timeout,
// until the session holds nothing. The transactions of others count.
//
// Where a sync is not answered for a quarter of the timeout, the server may be cut
// off from the leader. Nothing else would tell. The session goes to another server
// then, while there is time for that.
func (s *Session) confirm() {
	timer := time.NewTimer(s.untilConfirmation())
	defer timer.Stop()
	var sent *batch
	var sentAt time.Time
	for {
		select {
		case <-timer.C:
		case <-s.Done():
			return
		}
		wait := s.untilConfirmation()
		if wait <= 0 {
			if s.stopConfirming() {
				return
			}
			switch {
			case sent == nil || sent.settled():
				sent, sentAt = s.sendSync(), time.Now()
			case time.Since(sentAt) >= s.Timeout()/4:
				s.log.Warn("the leader does not answer; trying another server", "server", sent.conn.RemoteAddr())
				sent.conn.Close()
			default: // a second one before the first is answered would prove no more
			}
			wait = s.Timeout() / confirmations
		}
		timer.Reset(wait)
	}
}

// untilConfirmation is how long the leader needs not be asked anything.
func (s *Session) untilConfirmation() time.Duration {
	asked := s.wire.at(s.wire.leaderAsked.Load())
	return time.Until(asked.Add(s.Timeout() / confirmations))
}

// stopConfirming reports whether there is nothing left to confirm for.
func (s *Session) stopConfirming() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirming = s.holding()
	return !s.confirming
}

// sendSync sends a sync that nobody waits for; the wire notes its answer. It
// returns nil where it cannot be sent.
func (s *Session) sendSync() *batch {
	b, err := s.sendOn(s.dialer.connection(), []request{s.syncRequest("/")})
	if err != nil {
		return nil // the next connection begins with a contact that the leader has
	}
	return b
}

func (s *Session) syncRequest(path string) request {
	var e jute.Encoder
	e.String(s.full(path))
	return request{op: opSync, body: e.Bytes}
}

// SyncOn has the server of a connection catch up with the leader, and reads the record
// of path then, in one exchange. When it returns true, the connection's watches have
// told what the leader had done before the call. It returns false if the connection is
// lost; disconnected is the channel that Connected has returned for it. Where path does
// not exist its record is zero.
func (s *Session) SyncOn(ctx context.Context, path string, disconnected <-chan struct{}) (record Stat, synced bool, err error) {
	replies, err := s.exchange(ctx, s.syncRequest("/"), s.existsRequest(path))
	if err == nil {
		err = replies[0].err()
	}
	switch {
	case s.Err() != nil:
		return Stat{}, false, s.Err()
	case ctx.Err() != nil:
		return Stat{}, false, s.interrupted("sync", ctx)
	case lostConnection(err), Happened(disconnected):
		return Stat{}, false, nil
	case err != nil:
		return Stat{}, false, answer("sync", "/", err)
	}
	switch err := replies[1].err(); {
	case errors.Is(err, zk.ErrNoNode):
		return Stat{}, true, nil
	case err != nil:
		return Stat{}, false, answer("look at", path, err)
	}
	d := jute.Decoder{Bytes: replies[1].body}
	record = Stat(d.Stat())
	return record, d.Err == nil, d.Err
}

// GetSynced is Get by a server that has caught up with the leader before: what is
// found was there, for the whole ensemble, after this call had begun. It is one
// round trip, to the leader. It may read a place whatever its ACL is. Before there is
// one it gives no identity: see newACL.
func (s *Session) GetSynced(ctx context.Context, path string) (Node, error) {
	var e jute.Encoder
	e.String(s.full(path))
	e.Bool(false)
	exchange := s.exchangeIdentified
	if s.unresolved() {
		exchange = s.exchange
	}
	return readAgain(ctx, s, "read", path, func(life context.Context) (Node, error) {
		replies, err := exchange(life, s.syncRequest(path), request{op: opGetData, body: e.Bytes})
		if err == nil {
			err = replies[0].err()
		}
		if err != nil {
			return Node{}, err
		}
		return replies[1].node()
	})
}
