package relay_test

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// unreachable returns an address that never answers, not even with a refusal: the address
// of a listener whose queue is full.
func unreachable(t *testing.T) string {
	t.Helper()
	fd := must.Get(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0))(t)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	must.Do(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must.Do(t, syscall.Listen(fd, 0))
	name := must.Get(syscall.Getsockname(fd))(t)
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
	r := must.Get(relay.Listen([]string{unreachable(t), echo(t)}, nil))(t)
	defer r.Cut()
	pingThrough(t, r)
}

func TestCutDoesNotWaitForAServerThatDoesNotAnswer(t *testing.T) {
	r := must.Get(relay.Listen([]string{unreachable(t), unreachable(t), unreachable(t)}, nil))(t)
	conn := must.Get(net.Dial("tcp", r.Addr()))(t)
	defer conn.Close()
	cut := make(chan struct{})
	go func() {
		r.Cut()
		close(cut)
	}()
	select {
	case <-cut:
	case <-time.After(soon): // the subject of the test: the relay gives up before the system does
		t.Errorf("Cut has not returned in %v", soon)
	}
}
