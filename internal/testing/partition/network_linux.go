package partition

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"
)

// Network is a set of hosts and the links between them. Several goroutines may call its
// methods.
type Network struct {
	hosts []*Host
	done  chan struct{}
	tasks sync.WaitGroup

	mu    sync.Mutex
	links map[direction]*link
}

// direction leads from one host to another.
type direction struct{ from, to int }

// New creates a network of n hosts, in which every direction works. It needs root on Linux
// and /dev/net/tun, and otherwise fails.
func New(n int) (*Network, error) {
	net := &Network{done: make(chan struct{}), links: make(map[direction]*link)}
	for i := range n {
		h, err := newHost(netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("partition: host %d: %w", i, err), net.Close())
		}
		net.hosts = append(net.hosts, h)
	}
	for i := range n {
		for j := range n {
			if i != j {
				net.links[direction{i, j}] = newLink(net.hosts[j])
			}
		}
	}
	for i := range n {
		net.tasks.Go(func() { net.forward(i) })
	}
	for _, l := range net.links {
		net.tasks.Go(func() { l.deliver(net.done) })
	}
	return net, nil
}

// Host returns host i, counted from 0.
func (n *Network) Host(i int) *Host { return n.hosts[i] }

// Set applies w to all later packets from one host to another.
func (n *Network) Set(from, to int, w Weather) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[direction{from, to}].weather = w
}

// Out applies w to all packets that a host sends.
func (n *Network) Out(host int, w Weather) {
	for to := range n.hosts {
		if to != host {
			n.Set(host, to, w)
		}
	}
}

// In applies w to all packets that are sent to a host.
func (n *Network) In(host int, w Weather) {
	for from := range n.hosts {
		if from != host {
			n.Set(from, host, w)
		}
	}
}

// Heal repairs all directions. Packets that are already delayed stay delayed.
func (n *Network) Heal() {
	for i := range n.hosts {
		n.Out(i, Weather{})
	}
}

// forward forwards the packets of a host until its device is closed.
func (n *Network) forward(from int) {
	buffer := make([]byte, maxPacket)
	for {
		size, err := n.hosts[from].device.Read(buffer)
		if err != nil {
			return
		}
		if to, ok := n.destination(buffer[:size]); ok && to != from {
			n.send(direction{from, to}, buffer[:size])
		}
	}
}

// destination returns the destination of an IPv4 packet. It ignores IPv6 packets: the kernel
// sends them to find routers, which do not exist here.
func (n *Network) destination(packet []byte) (int, bool) {
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return 0, false
	}
	to := netip.AddrFrom4([4]byte(packet[16:20]))
	for i, h := range n.hosts {
		if h.addr == to {
			return i, true
		}
	}
	return 0, false
}

func (n *Network) send(d direction, packet []byte) {
	n.mu.Lock()
	l := n.links[d]
	w := l.weather
	n.mu.Unlock()
	l.send(packet, w)
}

// Close removes the network. All processes on its hosts must have ended.
func (n *Network) Close() error {
	close(n.done)
	var errs []error
	for _, h := range n.hosts {
		errs = append(errs, h.close())
	}
	n.tasks.Wait()
	return errors.Join(errs...)
}

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
