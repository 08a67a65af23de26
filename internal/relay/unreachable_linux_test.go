package relay_test

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/relay"
)

// unreachable returns an address that never answers, not even with a refusal: the address
// of a listener whose queue is full.
func unreachable(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 10 {
		conn, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("the listener's queue does not get full")
	return ""
}

func TestRelayReachesTheServerBehindOneThatDoesNotAnswer(t *testing.T) {
	r, err := relay.Listen([]string{unreachable(t), echo(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Cut()
	pingThrough(t, r)
}

func TestCutDoesNotWaitForAServerThatDoesNotAnswer(t *testing.T) {
	r, err := relay.Listen([]string{unreachable(t), unreachable(t), unreachable(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cut := make(chan struct{})
	go func() {
		r.Cut()
		close(cut)
	}()
	select {
	case <-cut:
	case <-time.After(soon): // subject: the system gives up later
		t.Errorf("Cut has not returned in %v", soon)
	}
}
