package partition

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// Network is a set of hosts, and what happens to packets between them. Its methods may
// be called from several goroutines.
type Network struct {
	hosts []*Host
	done  chan struct{}
	tasks sync.WaitGroup

	mu    sync.Mutex
	links map[direction]*link
}

// direction is from one host to another.
type direction struct{ from, to int }

// New makes a network of n hosts, of which none is broken. It fails where it may not:
// it needs root on Linux, and the device /dev/net/tun.
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

// Host is the i-th host, counted from 0.
func (n *Network) Host(i int) *Host { return n.hosts[i] }

// Set has packets from one host to another meet w from now on.
func (n *Network) Set(from, to int, w Weather) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[direction{from, to}].weather = w
}

// Out has all packets that a host sends meet w.
func (n *Network) Out(host int, w Weather) {
	for to := range n.hosts {
		if to != host {
			n.Set(host, to, w)
		}
	}
}

// In has all packets that are sent to a host meet w.
func (n *Network) In(host int, w Weather) {
	for from := range n.hosts {
		if from != host {
			n.Set(from, host, w)
		}
	}
}

// Heal mends all directions. Packets that are late already stay late.
func (n *Network) Heal() {
	for i := range n.hosts {
		n.Out(i, Weather{})
	}
}

// forward hands on what a host sends, until its device is closed.
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

// destination is the host that an IPv4 packet is for. There are no others: those of
// IPv6 are the kernel's own, for routers that do not exist.
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

// Close removes the network. All processes in its hosts must have ended.
func (n *Network) Close() error {
	close(n.done)
	var errs []error
	for _, h := range n.hosts {
		errs = append(errs, h.close())
	}
	n.tasks.Wait()
	return errors.Join(errs...)
}
