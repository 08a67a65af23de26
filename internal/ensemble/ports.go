package ensemble

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const loopbackIP = "127.0.0.1"

// Ports are below the ranges from which Linux (32768 and up), macOS and Windows (49152
// and up) take source ports. Any outgoing connection of the machine can take a port of
// those ranges while its server is down. Even worse, a client that keeps dialling such
// a port is one day connected to itself. Then the server cannot come back.
const (
	lowestPort  = 10240
	highestPort = 32767
)

// pickPorts returns n distinct loopback ports that were free a moment ago. Another
// process can take one before the server does. The caller must be ready to pick again.
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

// errPortTaken marks a server that could not start because another process has taken
// one of its ports.
var errPortTaken = errors.New("port taken")
