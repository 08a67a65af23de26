package partition

import (
	"math/rand/v2"
	"time"
)

// Weather is what happens to packets on their way. The zero Weather delivers all of
// them at once.
type Weather struct {
	Loss  float64       // the part of the packets that is dropped, up to 1
	Delay time.Duration // of each packet that is delivered
}

// Cut drops every packet.
var Cut = Weather{Loss: 1}

// maxInFlight bounds what is on its way in one direction. More is dropped, as any
// router does.
const maxInFlight = 4096

// link is one direction between two hosts. Packets stay in order.
type link struct {
	to       *Host
	weather  Weather // under the lock of the network
	inFlight chan late
}

// late is a packet that is delivered at its time.
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

// deliver writes packets to the host when their time has come, until done is closed.
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
