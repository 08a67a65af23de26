package relay_test

import (
	"io"
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/zkrecipes/zkrecipes/bench/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo returns the address of a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func TestRelayForwardsUntilItIsCut(t *testing.T) {
	r, err := relay.Listen([]string{"127.0.0.1:1", echo(t)}) // nobody listens at the first
	if err != nil {
		t.Fatal(err)
	}
	defer r.Cut()
	conn, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4)
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "ping" {
		t.Fatalf("got %q, %v", answer, err)
	}
	r.Cut()
	if _, err := conn.Read(answer); err == nil {
		t.Error("something came through a relay that was cut")
	}
	if conn, err := net.Dial("tcp", r.Addr()); err == nil {
		conn.Close()
		t.Error("a relay that was cut accepts connections")
	}
}
