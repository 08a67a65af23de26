package session

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
)

// closeAfterwards closes the session at the server over connections of its own,
// when go-zookeeper is gone. A zk.Conn that was told to close gives up with its
// connection, and the session's nodes would stay until it expires.
func (s *Session) closeAfterwards(ctx context.Context) error {
	for {
		err := s.closeOnce(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		s.log.Debug("closing the session again", "error", err)
	}
}

// closeOnce resumes the session, which the server refuses if it is gone already,
// and closes it.
func (s *Session) closeOnce(ctx context.Context) error {
	address, _ := s.dialer.Next()
	c, err := s.dialer.attempt(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	password := s.wire.password.Load()
	if password == nil {
		return errors.New("no password")
	}
	if _, err := c.Write(connectRequest(int32(s.Timeout().Milliseconds()), s.id, *password)); err != nil {
		return err
	}
	if err := skipFrame(c); err != nil {
		return err
	}
	if s.wire.sessionID.Load() != s.id {
		s.wire.setClosed()
		return nil
	}
	if _, err := c.Write(closeRequest()); err != nil {
		return err
	}
	for !s.wire.isClosed() {
		if err := skipFrame(c); err != nil {
			return err
		}
	}
	return nil
}

func skipFrame(r io.Reader) error {
	var length [lengthSize]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, r, int64(binary.BigEndian.Uint32(length[:])))
	return err
}

// connectRequest is the frame that resumes a session; the wire puts lastZxidSeen
// in.
func connectRequest(timeout int32, id int64, password []byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+8+4+8+lengthSize+len(password)))
	frame = binary.BigEndian.AppendUint32(frame, 0) // protocol version
	frame = binary.BigEndian.AppendUint64(frame, 0) // lastZxidSeen
	frame = binary.BigEndian.AppendUint32(frame, uint32(timeout))
	frame = binary.BigEndian.AppendUint64(frame, uint64(id))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(password)))
	return append(frame, password...)
}

func closeRequest() []byte {
	op := int32(opClose)
	frame := binary.BigEndian.AppendUint32(nil, 8)
	frame = binary.BigEndian.AppendUint32(frame, 1) // xid
	return binary.BigEndian.AppendUint32(frame, uint32(op))
}
