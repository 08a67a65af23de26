package simulation

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// conn is one end of a connection.
type conn struct {
	in, out *pipe
	once    sync.Once
	gone    func() // called at Close; removes the connection from its host
}

// newConns returns the two ends of a connection, with the delay of each direction.
func newConns(there, back func() time.Duration) (near, far *conn) {
	a, b := newPipe(there), newPipe(back)
	return &conn{in: b, out: a}, &conn{in: a, out: b}
}

// Read returns an error after the peer has closed the connection. When it has returned one, writes
// fail, as after a reset by the peer.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	if err != nil && !isTimeout(err) {
		c.out.refuse(syscall.EPIPE)
	}
	return n, err
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}

func (c *conn) Write(b []byte) (int, error) { return c.out.Write(b) }

// Close ends both directions. Bytes that were written before are still delivered.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.out.finish(net.ErrClosed)
		c.in.shut()
		if c.gone != nil {
			c.gone()
		}
	})
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	c.in.setReadDeadline(t)
	c.out.setWriteDeadline(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error  { c.in.setReadDeadline(t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.out.setWriteDeadline(t); return nil }

func (c *conn) LocalAddr() net.Addr  { return address{} }
func (c *conn) RemoteAddr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "simulated" }
func (address) String() string  { return "simulated" }

// window is the number of bytes that a pipe holds before its writer waits, like the buffers of
// two sockets. So a reader that stops reading stops the writer.
const window = 64 << 10

// pipe is one direction of a connection. Bytes arrive in order, each piece with a delay. A pipe
// has one reader and no goroutine: the reader waits until the first piece is due.
type pipe struct {
	delay func() time.Duration // called once for each piece

	mu       sync.Mutex
	pieces   []piece
	held     int           // bytes in pieces
	last     time.Time     // when the last piece is due
	wrote    time.Time     // when the last piece was written
	stalled  time.Time     // nothing is delivered until then
	hung     bool          // nothing is delivered from now on
	end      error         // error of later writes
	closed   bool          // by the reader
	readBy   time.Time     // deadline of reads; zero: none
	writeBy  time.Time     // deadline of writes; zero: none
	changed  chan struct{} // wakes the reader
	drained  chan struct{} // wakes the writer
	writing  sync.Mutex
	readWait *time.Timer
}

// piece is the bytes written at one instant. A piece without bytes is the end of the pipe. All
// calls that write at one instant share one delay, because their number depends on the order in
// which goroutines run.
type piece struct {
	due   time.Time
	bytes []byte
}

func newPipe(delay func() time.Duration) *pipe {
	return &pipe{delay: delay, changed: make(chan struct{}, 1), drained: make(chan struct{}, 1)}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Read returns bytes that are due, or waits for them.
func (p *pipe) Read(b []byte) (int, error) {
	for {
		n, wait, err := p.take(b)
		if n > 0 || err != nil {
			return n, err
		}
		p.await(wait)
	}
}

// take reads bytes that are due now. Otherwise it returns how long to wait; a negative duration
// means for ever.
func (p *pipe) take(b []byte) (n int, wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.closed {
		return 0, 0, net.ErrClosed
	}
	if !p.readBy.IsZero() && !now.Before(p.readBy) {
		return 0, 0, os.ErrDeadlineExceeded
	}
	wait = -1
	if len(p.pieces) > 0 && !p.hung {
		first := p.pieces[0]
		due := first.due
		if due.Before(p.stalled) {
			due = p.stalled
		}
		if wait = due.Sub(now); wait <= 0 {
			if first.bytes == nil {
				return 0, 0, io.EOF
			}
			return p.consume(b), 0, nil
		}
	}
	if !p.readBy.IsZero() {
		if left := p.readBy.Sub(now); wait < 0 || left < wait {
			wait = left
		}
	}
	return 0, wait, nil
}

// consume reads bytes of the first piece.
func (p *pipe) consume(b []byte) int {
	n := copy(b, p.pieces[0].bytes)
	if p.held -= n; n == len(p.pieces[0].bytes) {
		p.pieces[0] = piece{}
		p.pieces = p.pieces[1:]
	} else {
		p.pieces[0].bytes = p.pieces[0].bytes[n:]
	}
	wake(p.drained)
	return n
}

func (p *pipe) await(wait time.Duration) {
	if wait < 0 {
		<-p.changed
		return
	}
	if p.readWait == nil {
		p.readWait = time.NewTimer(wait)
	} else {
		p.readWait.Reset(wait)
	}
	select {
	case <-p.changed:
		p.readWait.Stop()
	case <-p.readWait.C:
	}
}

// Write sends one piece. It waits while the window is full.
func (p *pipe) Write(b []byte) (int, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	for {
		p.mu.Lock()
		now := time.Now()
		if p.end != nil {
			defer p.mu.Unlock()
			return 0, p.end
		}
		if !p.writeBy.IsZero() && !now.Before(p.writeBy) {
			p.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		}
		if p.held < window {
			p.push(now, append([]byte{}, b...))
			p.mu.Unlock()
			return len(b), nil
		}
		by := p.writeBy
		p.mu.Unlock()
		if by.IsZero() {
			<-p.drained
			continue
		}
		late := time.NewTimer(by.Sub(now))
		select {
		case <-p.drained:
		case <-late.C:
		}
		late.Stop()
	}
}

// push appends a piece that is due after its delay, and after all earlier pieces. Bytes written at
// the instant of the last piece join it.
func (p *pipe) push(now time.Time, b []byte) {
	if n := len(p.pieces); b != nil && n > 0 && p.pieces[n-1].bytes != nil && now.Equal(p.wrote) {
		p.pieces[n-1].bytes = append(p.pieces[n-1].bytes, b...)
		p.held += len(b)
		return
	}
	p.wrote = now
	due := now.Add(p.delay())
	if !due.After(p.last) {
		due = p.last.Add(time.Nanosecond)
	}
	p.last = due
	p.pieces = append(p.pieces, piece{due, b})
	p.held += len(b)
	if len(p.pieces) == 1 {
		wake(p.changed)
	}
}

// change changes the pipe and wakes its reader or its writer.
func (p *pipe) change(waiting chan struct{}, change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	wake(waiting)
}

// finish ends the pipe. The reader receives the bytes that were written, and then io.EOF. Later
// writes fail with err.
func (p *pipe) finish(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end == nil {
		p.end = err
		p.push(time.Now(), nil)
		wake(p.drained)
	}
}

// shut closes the reader's end: reads fail. The writer does not notice it on this pipe.
func (p *pipe) shut() {
	p.change(p.changed, func() { p.closed = true })
}

// refuse fails writes from now on: the peer has closed the connection.
func (p *pipe) refuse(err error) {
	p.change(p.drained, func() {
		if p.end == nil {
			p.end = err
		}
	})
}

// stall delivers nothing until a time, as if packets were lost and sent again.
func (p *pipe) stall(until time.Time) {
	p.change(p.changed, func() {
		if until.After(p.stalled) {
			p.stalled = until
		}
	})
}

// unstall ends a stall.
func (p *pipe) unstall() {
	p.change(p.changed, func() { p.stalled = time.Time{} })
}

// hang delivers nothing from now on, not even the end: the connection is half open.
func (p *pipe) hang() {
	p.change(p.changed, func() { p.hung = true })
}

func (p *pipe) setReadDeadline(t time.Time) {
	p.change(p.changed, func() { p.readBy = t })
}

func (p *pipe) setWriteDeadline(t time.Time) {
	p.change(p.drained, func() { p.writeBy = t })
}

// discard drops the bytes that have not arrived. The reader receives io.EOF after d and the delay
// of a message.
func (p *pipe) discard(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pieces, p.held, p.stalled = nil, 0, time.Time{}
	if p.end == nil {
		p.end = io.ErrClosedPipe
	}
	p.push(time.Now().Add(d), nil)
	wake(p.drained)
}
