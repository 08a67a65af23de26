package zkserver

import (
	"slices"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// task is one request on its way through the server.
type task struct {
	c    *conn
	xid  int32
	call operation
	bad  bool // the body could not be decoded
}

// receive handles one packet after the handshake.
func (c *conn) receive(body []byte) error {
	d := jute.Decoder{Bytes: body}
	xid, op := d.Int32(), Op(d.Int32())
	if d.Err != nil {
		return d.Err
	}
	s := c.srv
	if !s.lockThawed() {
		return errFinished
	}
	c.touch() // each packet keeps the session alive, even if a fault follows
	s.mu.Unlock()

	call, err := decodeOperation(op, d.Bytes, s.profile)
	s.enqueue(task{c: c, xid: xid, call: call, bad: err != nil})
	if c.finishing() {
		return errFinished
	}
	return nil
}

// enqueue runs a request. If another goroutine runs an earlier request of the same session,
// it leaves the request to that goroutine.
func (s *Server) enqueue(t task) {
	q := t.c.pipeline()
	q.mu.Lock()
	if q.busy {
		q.waiting = append(q.waiting, t)
		q.mu.Unlock()
		return
	}
	q.busy = true
	q.mu.Unlock()
	s.drain(q, t)
}

// drain runs t and the requests in the queue behind it. If a fault holds a request back,
// another goroutine continues, and the reader continues, so that the session does not
// expire.
func (s *Server) drain(q *queue, t task) {
	for {
		f := s.decide(t)
		if f.Hold == nil {
			f.Hold = t.c.waits(t.call.op)
		}
		if f.Hold != nil {
			s.wg.Go(func() {
				// In the meantime the follower may have been cut off.
				for hold := f.Hold; hold != nil; hold = t.c.waits(t.call.op) {
					select {
					case <-hold:
					case <-s.done:
						return
					}
				}
				s.run(t, f)
				if next, ok := q.next(); ok {
					s.drain(q, next)
				}
			})
			return
		}
		s.run(t, f)
		var ok bool
		if t, ok = q.next(); !ok {
			return
		}
	}
}

func (q *queue) next() (task, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.busy = false
		return task{}, false
	}
	t := q.waiting[0]
	q.waiting = q.waiting[1:]
	return t, true
}

// run executes a request with the fault that was chosen for it.
func (s *Server) run(t task, f Fault) {
	if !s.lockThawed() {
		return
	}
	defer s.mu.Unlock()
	c := t.c
	forLeader := s.profile.forLeader(t.call.op)
	if c.sess.ended && !(c.behind() && !forLeader) || c.finishing() {
		return // a follower that is cut off answers, and does not see that the session ended
	}
	if forLeader && c.moves != c.sess.moves {
		// SessionMovedException: the session has moved to another server. If it has come back, the
		// request is too late too: a follower sends the leader its requests and moves in order.
		return
	}
	if forLeader && c.follower != nil && len(s.profile.logged) > 0 {
		c.sess.touch()
	}
	switch {
	case f.ExpireBefore:
		s.expire(c.sess)
		return
	case f.CloseBefore:
		s.detach(c).finish()
		return
	case f.DropReply:
		c.silence()
	case f.HoldReply != nil:
		c.holdOutput(f.HoldReply)
	}
	s.execute(t, f.Throttle)
	if f.ExpireAfter && !c.sess.ended {
		s.expire(c.sess)
	}
	if f.DropReply || f.CloseAfter || f.ExpireAfter {
		s.detach(c).finish()
	}
}

// execute answers one request. The caller holds the mutex, so replies and events are sent
// in the order of execution.
func (s *Server) execute(t task, throttle bool) {
	s.count(t.call.op)
	if s.profile.closesSilently && (t.bad || !s.profile.supports(t.call.op)) {
		t.c.finish()
		return
	}
	if slices.Contains(s.profile.logged, t.call.op) {
		s.tree.zxid++
	}
	f := newFrame()
	var result code
	switch op := t.call.op; {
	case op == OpPing:
	case throttle:
		result = codeThrottledOp
	case op == OpAuth:
		s.authenticate(t)
		return
	case op == OpCloseSession:
		s.end(t.c.sess)
	case !s.profile.supports(op):
		result = codeUnimplemented
	case t.bad && !op.writes():
		result = codeMarshalling
	case op.writes():
		result = s.write(t, f)
	default:
		result = s.read(t, f)
	}
	if result == codeUnimplemented && !s.profile.supports(t.call.op) {
		// ZooKeeper also closes the connection.
		t.c.send(seal(f, t.xid, -1, result))
		t.c.finish()
		return
	}
	if t.call.op != OpCloseSession || !s.profile.closesSilently {
		t.c.send(seal(f, t.xid, t.c.known().zxid, result))
	}
	if t.call.op == OpCloseSession {
		s.detach(t.c).finish()
	}
}

func known(op Op) bool {
	_, ok := opNames[op]
	return ok
}

// authenticate adds an identity to the connection, or closes the connection.
func (s *Server) authenticate(t task) {
	result := codeOK
	switch {
	case t.bad:
		t.c.finish()
		return
	case t.call.scheme == "digest" && !s.cfg.DisableDigest:
		id := identity{"digest", digestID(t.call.data)}
		if !slices.Contains(t.c.who, id) {
			t.c.who = append(t.c.who, id)
		}
	case t.call.scheme == "ip":
	default:
		result = codeAuthFailed
	}
	t.c.send(seal(newFrame(), t.xid, 0, result))
	if result != codeOK {
		s.detach(t.c).finish()
	}
}
