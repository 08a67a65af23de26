package zkserver

import (
	"encoding/binary"
	"errors"
	"net"
	"time"
)

// handshake answers the connect request. A refused session is told so by an
// answer with session 0, and the connection ends.
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
	if r.lastZxid > s.tree.zxid {
		// The client has seen the future: it belongs to another server.
		return errors.New("zkserver: client is ahead of this server")
	}
	sess := s.open(c, r)
	e := encoder{b: make([]byte, 4, 64)}
	e.i32(0)
	if sess == nil {
		e.i32(0)
		e.i64(0)
		e.buffer(make([]byte, 16))
	} else {
		c.sess = sess
		e.i32(int32(sess.timeout / time.Millisecond))
		e.i64(sess.id)
		e.buffer(s.password(sess.id))
	}
	if r.hasRO {
		e.bool(false)
	}
	binary.BigEndian.PutUint32(e.b, uint32(len(e.b)-4))
	c.send(e.b)
	if sess == nil {
		c.finish()
		return errFinished
	}
	return nil
}
