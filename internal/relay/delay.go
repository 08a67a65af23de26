package relay

import (
	"net"
	"sync"
	"time"
)

// Delay is a network that is far away. Relays that share one hold everything back for
// half of a round-trip time on each way. Order and throughput stay what they are.
type Delay struct {
	oneWay time.Duration
	line   chan held // in the order in which it is due: all is held for the same time
	ended  chan struct{}
}

// held is bytes on their way. nil is the end of what comes.
type held struct {
	due   time.Time
	bytes []byte
	to    chan<- []byte
}

const (
	// inFlight is how many pieces of one connection are on their way at most, in each
	// direction. Whoever sends more waits, as on a full socket.
	inFlight = 64
	// piece is the size, in bytes, of the largest.
	piece = 4 << 10
)

// NewDelay returns a delay of that round-trip time.
func NewDelay(roundTrip time.Duration) *Delay {
	d := &Delay{oneWay: roundTrip / 2, line: make(chan held, 1<<12), ended: make(chan struct{})}
	go d.release()
	return d
}

// Close ends the delay. The relays that share it must have been cut.
func (d *Delay) Close() {
	close(d.line)
	<-d.ended
}

// release lets go of what is due.
func (d *Delay) release() {
	defer close(d.ended)
	for h := range d.line {
		sleepUntil(h.due)
		h.to <- h.bytes // has room for all that is in flight
	}
}

func (d *Delay) hold(bytes []byte, to chan<- []byte) {
	d.line <- held{time.Now().Add(d.oneWay), bytes, to}
}

// pipe copies as a plain relay does, and later.
func (d *Delay) pipe(to, from net.Conn) {
	due := make(chan []byte, inFlight+1)
	room := make(chan struct{}, inFlight)
	var writing sync.WaitGroup
	writing.Go(func() {
		for bytes := <-due; bytes != nil; bytes = <-due {
			if _, err := to.Write(bytes); err != nil {
				from.Close() // ends the reading, and so this
			}
			<-room
		}
		to.Close()
	})
	buffer := make([]byte, piece)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			room <- struct{}{}
			d.hold(append([]byte(nil), buffer[:n]...), due)
		}
		if err != nil {
			break
		}
	}
	d.hold(nil, due)
	writing.Wait()
	from.Close()
}

// sleepUntil sleeps until then. The runtime's timers are as late as a millisecond on an
// idle machine. A network of a data centre takes less. So the rest is slept in the system.
func sleepUntil(then time.Time) {
	const late = 2 * time.Millisecond
	for left := time.Until(then); left > 0; left = time.Until(then) {
		if left > late {
			time.Sleep(left - late)
		} else {
			nap(left)
		}
	}
}
