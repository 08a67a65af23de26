package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
)

// Shut closes the gate: no connection is made any more.
func (w *Wire) Shut() { w.dialer.shut() }

// Drop closes the present connection, if any.
func (w *Wire) Drop() {
	if c := w.Current(); c != nil {
		c.Close()
	}
}

// Close has go-zookeeper send closeSession and stop. It waits for a second for an answer
// that may never come.
func (w *Wire) Close() { w.zk.Close() }

// Begun reports whether Connect was called.
func (w *Wire) Begun() bool { return w.zk != nil }

// Wait returns when go-zookeeper's goroutines are gone.
func (w *Wire) Wait() {
	for range w.ended {
	}
}

// Closed is closed when the server has confirmed that the session is closed.
func (w *Wire) Closed() <-chan struct{} { return w.closed }

func (w *Wire) setClosed() { w.closeOnce.Do(func() { close(w.closed) }) }

// SendClose tells the server that the session is over, if it was asked for the session. It
// takes the request also if its answer to the handshake has not arrived.
func (c *Conn) SendClose() {
	if c.Asked() && !c.wire.spared.Load() {
		_ = c.write(closeRequest())
	}
}

// CloseSession closes the session at the server over connections of its own,
// when go-zookeeper is gone. A zk.Conn that was told to close gives up with its
// connection, and the session's nodes would stay until it expires.
func (w *Wire) CloseSession(ctx context.Context, id int64) error {
	for {
		err := w.closeAgain(ctx, id)
		if err == nil || ctx.Err() != nil {
			return err
		}
		w.Logger.Debug("closing the session again", "error", err)
	}
}

// closeAgain resumes the session, which the server refuses if it is gone already,
// and closes it.
func (w *Wire) closeAgain(ctx context.Context, id int64) error {
	address, _ := w.dialer.Next()
	c, err := w.dialer.connect(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	password := w.Password()
	if password == nil {
		return errors.New("no password")
	}
	if _, err := c.Write(connectRequest(int32(w.Lease.Timeout().Milliseconds()), id, password)); err != nil {
		return err
	}
	if err := skipFrame(c); err != nil {
		return err
	}
	if w.ID() != id {
		w.setClosed()
		return nil
	}
	if _, err := c.Write(closeRequest()); err != nil {
		return err
	}
	for !Happened(w.closed) {
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
