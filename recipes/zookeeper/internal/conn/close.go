package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Shut closes the gate: the session makes no more connections.
func (w *Wire) Shut() { w.dialer.shut() }

// Drop closes the present connection, if any.
func (w *Wire) Drop() {
	if c := w.Current(); c != nil {
		c.Close()
	}
}

// Close makes go-zookeeper send closeSession and stop. It waits at most a second for the
// answer.
func (w *Wire) Close() { w.zk.Close() }

// Begun reports whether Connect was called.
func (w *Wire) Begun() bool { return w.zk != nil }

// Wait returns when go-zookeeper's goroutines have ended.
func (w *Wire) Wait() {
	for range w.ended {
	}
}

// Closed is closed when the server has confirmed that the session is closed.
func (w *Wire) Closed() <-chan struct{} { return w.closed }

func (w *Wire) setClosed() { w.closeOnce.Do(func() { close(w.closed) }) }

// SendClose sends closeSession if the handshake was sent on this connection. The server accepts
// it even if its reply to the handshake has not arrived yet.
func (c *Conn) SendClose() {
	c.mu.Lock()
	began := !c.began.IsZero()
	c.mu.Unlock()
	if began && !c.wire.spared.Load() {
		_ = c.write(closeRequest())
	}
}

// CloseSession closes the session at the server over new connections, after go-zookeeper has
// stopped. go-zookeeper gives up closing when its connection ends, and the session's ephemeral
// znodes would remain until the session expires.
func (w *Wire) CloseSession(ctx context.Context, id int64) error {
	for {
		err := w.closeAgain(ctx, id)
		if err == nil || ctx.Err() != nil || errors.Is(err, recipes.ErrAuthFailed) {
			return err
		}
		w.Logger.Debug("closing the session again", "error", err)
	}
}

// closeAgain resumes the session and closes it. A server refuses to resume a session that has
// already ended.
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

// connectRequest returns the frame that resumes a session. Conn.Write fills in lastZxidSeen.
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
