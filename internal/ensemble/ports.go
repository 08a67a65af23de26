package ensemble

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const loopbackIP = "127.0.0.1"

// Ports are below the ranges of source ports: from 32768 on Linux, from 49152 on macOS and
// Windows. Any outgoing connection of the machine can use a port of those ranges while the
// server is down. Even worse, a client that keeps dialling such a port can connect to
// itself. Then the server cannot listen on that port again.
const (
	lowestPort  = 10240
	highestPort = 32767
)

// pickPorts returns n distinct loopback ports that were free a moment ago. Another process
// can listen on one of them before the server does. The caller must be able to pick again.
func pickPorts(n int) ([]int, error) {
	var listeners []net.Listener // kept open so that no port is picked twice
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	var last error
	for range 100 * n {
		if len(listeners) == n {
			break
		}
		l, err := net.Listen("tcp", loopback.address(lowestPort+rand.IntN(highestPort-lowestPort+1)))
		if err != nil {
			last = err
			continue
		}
		listeners = append(listeners, l)
	}
	if len(listeners) < n {
		return nil, fmt.Errorf("ensemble: cannot find %d free ports on %s: %w", n, loopbackIP, last)
	}
	ports := make([]int, n)
	for i, l := range listeners {
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func (h Host) address(port int) string { return net.JoinHostPort(h.IP, strconv.Itoa(port)) }

// errPortTaken says that a server could not start because another process listens on one
// of its ports.
var errPortTaken = errors.New("port taken")
