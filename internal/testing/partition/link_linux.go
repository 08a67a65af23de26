package partition

import (
	"math/rand/v2"
	"time"
)

// Weather is the loss and delay of packets in one direction. The zero Weather delivers all
// packets at once.
type Weather struct {
	Loss  float64       // share of packets that are dropped, 0 to 1
	Delay time.Duration // of each delivered packet
}

// Cut drops every packet.
var Cut = Weather{Loss: 1}

// maxInFlight bounds the packets on their way in one direction. Like a router, a link drops
// the packets beyond it.
const maxInFlight = 4096

// link is one direction between two hosts. Packets stay in order.
type link struct {
	to       *Host
	weather  Weather // under the lock of the network
	inFlight chan late
}

// late is a packet and the time of its delivery.
type late struct {
	packet []byte
	at     time.Time
}

func newLink(to *Host) *link { return &link{to: to, inFlight: make(chan late, maxInFlight)} }

func (l *link) send(packet []byte, w Weather) {
	if w.Loss > 0 && rand.Float64() < w.Loss {
		return
	}
	select {
	case l.inFlight <- late{append([]byte(nil), packet...), time.Now().Add(w.Delay)}:
	default:
	}
}

// deliver writes packets to the host at their time, until done is closed.
func (l *link) deliver(done <-chan struct{}) {
	for {
		select {
		case p := <-l.inFlight:
			if wait := time.Until(p.at); wait > 0 {
				select {
				case <-time.After(wait):
				case <-done:
					return
				}
			}
			l.to.device.Write(p.packet) // a device that is full or closed drops it
		case <-done:
			return
		}
	}
}
