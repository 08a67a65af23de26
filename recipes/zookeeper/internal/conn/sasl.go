package conn

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/sasl"
)

// authenticate makes the SASL exchange. It runs after the server's reply to the handshake, before
// go-zookeeper has read that reply. So no other request is sent before the exchange, and the
// contact counts only after it. The handshake's deadline applies. A refusal ends the session:
// the server would refuse again.
func (c *Conn) authenticate() error {
	handshake := make([]byte, c.rest)
	if _, err := io.ReadFull(c.in, handshake); err != nil {
		return err
	}
	c.unread, c.rest = slices.Concat(c.unread, handshake), 0
	var reply Reply
	for {
		var token []byte
		var err error
		switch reply.code {
		case 0:
			token, err = c.exchange.Next(reply.body)
		case Unimplemented:
			err = sasl.ErrNotOffered
		default:
			err = fmt.Errorf("the server refused the credentials, or has another mechanism (code %d)", reply.code)
		}
		if err != nil {
			err = c.wire.dialer.sasl.Refused(c.RemoteAddr().String(), err)
			c.wire.Lost(err)
			return err
		}
		if token == nil {
			return nil
		}
		if reply, err = c.exchangeToken(token); err != nil {
			return fmt.Errorf("SASL %s: %w", c.wire.SASL.Mechanism, err)
		}
	}
}

// exchangeToken sends a token and returns the reply, whose body is the server's token.
func (c *Conn) exchangeToken(token []byte) (r Reply, err error) {
	const xid, maxToken = 0, 64 << 10
	var e jute.Encoder
	e.Int32(int32(8 + lengthSize + len(token)))
	e.Int32(xid)
	e.Int32(opSASL)
	e.Buffer(token)
	c.wire.Counters.request(opSASL)
	c.wire.Counters.requestBytes.Add(int64(len(e.Bytes)))
	var head [lengthSize + replyHeaderSize]byte
	if err = c.write(e.Bytes); err == nil {
		_, err = io.ReadFull(c.in, head[:])
	}
	if err != nil {
		return r, err
	}
	length := int(int32(binary.BigEndian.Uint32(head[:])))
	if length < replyHeaderSize || length > maxToken || binary.BigEndian.Uint32(head[lengthSize:]) != xid {
		return r, jute.ErrMalformed
	}
	c.wire.Counters.responseBytes.Add(int64(lengthSize + length))
	body := make([]byte, length-replyHeaderSize)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return r, err
	}
	r.code = Code(binary.BigEndian.Uint32(head[lengthSize+12:]))
	if r.code == 0 {
		d := jute.Decoder{Bytes: body}
		r.body = d.Buffer()
		err = d.Err
	}
	return r, err
}
