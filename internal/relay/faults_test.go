package relay_test

import (
	"io"
	"net"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/relay"
)

// After Drop, held bytes are gone. After Hold, they pass when the relay is restored.
func TestHeldBytesPassWhenTheRelayIsRestoredOrNever(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	r, err := relay.Listen([]string{listener.Addr().String()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Cut()
	connect := func() (client, server net.Conn) {
		t.Helper()
		client, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if server, err = listener.Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close(); server.Close() })
		return client, server
	}
	send := func(to net.Conn, text string) {
		t.Helper()
		if _, err := io.WriteString(to, text); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(from net.Conn, want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
			t.Errorf("received %q, %v; want %q", got, err, want)
		}
	}
	ends := func(conn net.Conn) {
		t.Helper()
		if got, err := io.ReadAll(conn); len(got) > 0 {
			t.Errorf("received %q, %v; want the end of the connection", got, err)
		}
	}
	client, server := connect()
	send(server, "hello")
	receive(client, "hello")
	if got := r.Greeting(); string(got) != "hello" {
		t.Errorf("the server's greeting was %q", got)
	}

	r.HoldReplies()
	send(client, "request")
	receive(server, "request")
	send(server, "lost reply")
	r.Drop()
	r.Restore()
	ends(client)

	client, server = connect()
	r.Hold()
	send(client, "late request")
	send(server, "late reply")
	r.Restore()
	receive(server, "late request")
	receive(client, "late reply")

	r.Refuse()
	ends(client)
	if client, err = net.Dial("tcp", r.Addr()); err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends(client)
	r.Restore()
	client, _ = connect()
	r.Hold() // the deferred Cut ends it
	send(client, "held")
}
