package relay

import (
	"net"
	"sync"
	"time"
)

// Delay simulates a distant network. Relays that share a Delay delay all bytes by half of a
// round-trip time in each direction. It changes neither the order nor the throughput.
type Delay struct {
	oneWay time.Duration
	line   chan held // in the order in which they are due: all are held for the same time
	ended  chan struct{}
}

// held is bytes in flight. If bytes is nil, the connection has ended.
type held struct {
	due   time.Time
	bytes []byte
	to    chan<- []byte
}

const (
	// inFlight is the most pieces of one connection that are in flight in one direction.
	// The sender of more waits, as for a full socket.
	inFlight = 64
	// piece is the largest size of a piece, in bytes.
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

// release passes on the bytes that are due.
func (d *Delay) release() {
	defer close(d.ended)
	for h := range d.line {
		sleepUntil(h.due)
		h.to <- h.bytes // never blocks: there is room for all pieces in flight
	}
}

func (d *Delay) hold(bytes []byte, to chan<- []byte) {
	d.line <- held{time.Now().Add(d.oneWay), bytes, to}
}

// pipe copies like Relay.pipe, with the delay.
func (d *Delay) pipe(to, from net.Conn) {
	due := make(chan []byte, inFlight+1)
	room := make(chan struct{}, inFlight)
	var writing sync.WaitGroup
	writing.Go(func() {
		for bytes := <-due; bytes != nil; bytes = <-due {
			if _, err := to.Write(bytes); err != nil {
				from.Close() // ends the loop that reads, which sends the last nil
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

// sleepUntil sleeps until then. On an idle machine, the runtime's timers are up to a
// millisecond late, which is more than the delay of a data centre. So the last part is a
// sleep of the operating system.
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
