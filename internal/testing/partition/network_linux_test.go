package partition_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/partition"
)

// pair is a connection between two hosts.
type pair struct {
	net  *partition.Network
	a, b net.Conn
}

func newPair(t *testing.T) *pair {
	t.Helper()
	n := network(t, 2)
	p := &pair{net: n}
	listener := listen(t, n.Host(1))
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := listener.Accept()
		accepted <- c
	}()
	err := n.Host(0).Do(func() (err error) {
		p.a, err = net.Dial("tcp", listener.Addr().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p.b = <-accepted
	t.Cleanup(func() { p.a.Close(); p.b.Close() })
	return p
}

// network creates a network, or skips the test with a message if it cannot.
func network(t *testing.T, hosts int) *partition.Network {
	t.Helper()
	n, err := partition.New(hosts)
	if err != nil {
		cannot(t, err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// cannot skips the test, or fails it if lengthEnv or rollingEnv requires it.
func cannot(t *testing.T, err error) {
	t.Helper()
	if os.Getenv(lengthEnv) != "" || os.Getenv(rollingEnv) != "" {
		t.Fatalf("NOT RUN, no network that can be broken: %v", err)
	}
	t.Skipf("SKIPPED, no network that can be broken (root on Linux with /dev/net/tun is needed): %v", err)
}

func listen(t *testing.T, h *partition.Host) (l net.Listener) {
	t.Helper()
	err := h.Do(func() (err error) {
		l, err = net.Listen("tcp", h.IP()+":0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// send sends a byte and returns the time at which it was received.
func send(t *testing.T, from, to net.Conn) time.Time {
	t.Helper()
	if _, err := from.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(to, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return time.Now()
}

// A byte sent while a direction is cut arrives when it is repaired, because TCP resends it.
func TestACutDirectionDeliversNothing(t *testing.T) {
	p := newPair(t)
	for name, way := range map[string]struct {
		cut      func(int, partition.Weather)
		from, to net.Conn
	}{
		"out": {p.net.Out, p.a, p.b},
		"in":  {p.net.In, p.b, p.a},
	} {
		way.cut(0, partition.Cut)
		if _, err := way.from.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		// The test is that nothing arrives: a longer wait would prove no more.
		way.to.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, err := way.to.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: read %d bytes over a cut direction, %v", name, n, err)
		}
		way.to.SetReadDeadline(time.Time{})
		p.net.Heal()
		if _, err := io.ReadFull(way.to, make([]byte, 1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADelayedDirectionDeliversLate(t *testing.T) {
	p := newPair(t)
	const delay = 100 * time.Millisecond
	p.net.Out(0, partition.Weather{Delay: delay})
	began := time.Now()
	if late := send(t, p.a, p.b).Sub(began); late < delay {
		t.Errorf("arrived %v after it was sent; want %v at least", late, delay)
	}
}

func TestSomeOfThePacketsAreLost(t *testing.T) {
	n := network(t, 2)
	var from, to net.PacketConn
	for i, c := range []*net.PacketConn{&from, &to} {
		err := n.Host(i).Do(func() (err error) {
			*c, err = net.ListenPacket("udp", n.Host(i).IP()+":0")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer (*c).Close()
	}
	n.Out(0, partition.Weather{Loss: 0.5})
	const sent = 200
	for range sent {
		if _, err := from.WriteTo([]byte{0}, to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	for range 64 { // sent after the others; in one run of 2^64, none of them arrives
		if _, err := from.WriteTo([]byte{1}, to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	received := 0
	for buffer := make([]byte, 1); ; received++ {
		if _, _, err := to.ReadFrom(buffer); err != nil {
			t.Fatal(err)
		}
		if buffer[0] == 1 {
			break
		}
	}
	// One run in 10^12 is outside these bounds.
	if received < 50 || received > 150 {
		t.Errorf("%d of %d packets arrived; half of them should", received, sent)
	}
}

// A caller of Do is in its own network again after Do.
func TestDoLeavesTheCallersNetwork(t *testing.T) {
	n := network(t, 1)
	listener := listen(t, n.Host(0))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if c, err := new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String()); err == nil {
		c.Close()
		t.Error("this process's network reaches the host")
	}
}
