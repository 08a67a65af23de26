package simulation

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// window is how many bytes a pipe holds before its writer waits: the buffers of both
// sockets. A reader that reads nothing stops its writer in the end.
const window = 64 << 10

// pipe is one direction of a connection: bytes arrive in order, each piece a while
// after it was written. It has one reader. It needs no goroutine: the reader waits
// until the first piece is due.
type pipe struct {
	delay func() time.Duration // drawn once for each piece

	mu       sync.Mutex
	pieces   []piece
	held     int       // bytes in pieces
	last     time.Time // when the last piece is due
	wrote    time.Time // when it was written
	stalled  time.Time // nothing is delivered before
	hung     bool      // nothing is delivered any more
	end      error     // what the writer meets
	closed   bool      // by the reader
	readBy   time.Time // deadlines
	writeBy  time.Time
	changed  chan struct{} // wakes the reader
	drained  chan struct{} // wakes the writer
	writing  sync.Mutex
	readWait *time.Timer
}

// piece is what was written at one instant; without bytes it is the end. How many calls
// wrote it depends on the order in which goroutines run, so a piece has one delay.
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

// Read returns what is due, or waits for it.
func (p *pipe) Read(b []byte) (int, error) {
	for {
		n, wait, err := p.take(b)
		if n > 0 || err != nil {
			return n, err
		}
		p.await(wait)
	}
}

// take returns what is due now, or for how long there is nothing: for ever if
// that is negative.
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

// consume takes bytes of the first piece.
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

// push appends a piece, due after its delay and after all before it. What is written at
// the instant of the piece before goes with it.
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

// finish has the reader meet the end after what was written before.
func (p *pipe) finish(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end == nil {
		p.end = err
		p.push(time.Now(), nil)
		wake(p.drained)
	}
}

// shut is the reader's end of it: who writes learns of that by the other direction.
func (p *pipe) shut() {
	p.change(p.changed, func() { p.closed = true })
}

// refuse fails writes from now on: the writer knows that its peer has gone.
func (p *pipe) refuse(err error) {
	p.change(p.drained, func() {
		if p.end == nil {
			p.end = err
		}
	})
}

// stall delivers nothing until a time: packets are lost and sent again.
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

// hang delivers nothing any more, not even the end: half of the connection is open.
func (p *pipe) hang() {
	p.change(p.changed, func() { p.hung = true })
}

func (p *pipe) setReadDeadline(t time.Time) {
	p.change(p.changed, func() { p.readBy = t })
}

func (p *pipe) setWriteDeadline(t time.Time) {
	p.change(p.drained, func() { p.writeBy = t })
}

// discard loses what has not arrived, and has the reader meet the end, a while later
// than a message would take.
func (p *pipe) discard(later time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pieces, p.held, p.stalled = nil, 0, time.Time{}
	if p.end == nil {
		p.end = io.ErrClosedPipe
	}
	p.push(time.Now().Add(later), nil)
	wake(p.drained)
}
