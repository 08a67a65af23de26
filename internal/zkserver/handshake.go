package zkserver

import (
	"encoding/binary"
	"errors"
	"net"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// handshake answers the connect request. If the session is refused, the answer has session
// id 0, and the connection ends.
func (c *conn) handshake(body []byte) error {
	r, err := decodeConnect(body)
	if err != nil {
		return err
	}
	s := c.srv
	if !s.lockThawed() {
		return net.ErrClosed
	}
	defer s.mu.Unlock()
	if c.behind() {
		// Only the leader creates and revalidates sessions.
		return errors.New("zkserver: the follower does not reach its leader")
	}
	if r.lastZxid > s.tree.zxid {
		return errors.New("zkserver: client has seen a later transaction than this server")
	}
	sess := s.open(c, r)
	e := jute.Encoder{Bytes: make([]byte, 4, 64)}
	e.Int32(0)
	if sess == nil {
		e.Int32(0)
		e.Int64(0)
		e.Buffer(make([]byte, 16))
	} else {
		c.sess = sess
		e.Int32(int32(sess.timeout / time.Millisecond))
		e.Int64(sess.id)
		e.Buffer(s.password(sess.id))
	}
	if r.hasRO {
		e.Bool(false)
	}
	binary.BigEndian.PutUint32(e.Bytes, uint32(len(e.Bytes)-4))
	c.send(e.Bytes)
	if sess == nil {
		c.finish()
		return errFinished
	}
	return nil
}
