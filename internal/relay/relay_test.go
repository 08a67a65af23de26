package relay_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// echo returns the address of a server that sends back all bytes.
func echo(t *testing.T) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
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

// soon is longer than any step of these tests on a busy machine. It is shorter than the
// system's timeout of a dial without an answer (two minutes on Linux).
const soon = time.Minute

// pingThrough returns a connection through r on which the echo server has answered. Like a
// session, it dials again if the relay reached no server in time.
func pingThrough(t *testing.T, r *relay.Relay) net.Conn {
	t.Helper()
	deadline := time.Now().Add(watchdog.Patience)
	for {
		conn, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		must.Do(t, conn.SetDeadline(deadline))
		answer := make([]byte, 4)
		_, err = conn.Write([]byte("ping"))
		if err == nil {
			_, err = io.ReadFull(conn, answer)
		}
		switch {
		case err == nil && string(answer) == "ping":
			must.Do(t, conn.SetDeadline(time.Time{}))
			return conn
		case err == nil || time.Now().After(deadline):
			t.Fatalf("got %q, %v", answer, err)
		}
	}
}

func TestRelayForwardsUntilItIsCut(t *testing.T) {
	r := must.Get(relay.Listen([]string{"127.0.0.1:1", echo(t)}, nil))(t) // no server listens at the first address
	defer r.Cut()
	conn := pingThrough(t, r)
	r.Cut()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("bytes passed a relay that was cut")
	}
	if conn, err := net.Dial("tcp", r.Addr()); err == nil {
		conn.Close()
		t.Error("a relay that was cut accepts connections")
	}
}

func TestThroughKeepsTheNameInTheServersCertificate(t *testing.T) {
	cfg := recipes.SessionConfig{Servers: []string{"zk1.example:2281", "zk2.example:2281"}, TLS: &recipes.TLS{}}
	through := relay.Through(cfg, "127.0.0.1:5")
	if got := through.TLS.ServerName; got != "zk1.example" || len(through.Servers) != 1 || through.Servers[0] != "127.0.0.1:5" {
		t.Errorf("servers %q under the name %q", through.Servers, got)
	}
	if cfg.TLS.ServerName != "" {
		t.Error("the caller's configuration was changed")
	}
	cfg.TLS.ServerName = "zk.example"
	if got := relay.Through(cfg, "127.0.0.1:5").TLS.ServerName; got != "zk.example" {
		t.Errorf("the given name was replaced by %q", got)
	}
}

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

// delayed returns a connection to an echo server, through a relay with that round-trip time.
func delayed(t *testing.T, roundTrip time.Duration) (net.Conn, *relay.Relay) {
	t.Helper()
	delay := relay.NewDelay(roundTrip)
	t.Cleanup(delay.Close)
	r := must.Get(relay.Listen([]string{echo(t)}, delay))(t)
	t.Cleanup(r.Cut)
	conn := pingThrough(t, r)
	must.Do(t, conn.SetDeadline(time.Now().Add(watchdog.Patience)))
	return conn, r
}

func TestADelayAddsARoundTripTime(t *testing.T) {
	for _, want := range []time.Duration{500 * time.Microsecond, 20 * time.Millisecond} {
		conn, _ := delayed(t, want)
		answer, best := make([]byte, 4), time.Hour
		// A busy machine delays every round trip, so the best one counts.
		for tries := 0; best > 2*want && tries < 2000 || tries < 5; tries++ {
			began := time.Now()
			if _, err := conn.Write([]byte("ping")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(conn, answer); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			if took < want {
				t.Fatalf("a round trip of %v took %v", want, took)
			}
			best = min(best, took)
		}
		if best > 2*want {
			t.Errorf("a round trip of %v took %v at best", want, best)
		}
	}
}

// Many bytes are in flight at the same time.
func TestADelayKeepsOrderAndThroughput(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	conn, _ := delayed(t, roundTrip)
	sent := make([]byte, 4<<20)
	for i := range sent {
		sent[i] = byte(i >> 8)
	}
	got := make([]byte, len(sent))
	var reading sync.WaitGroup
	reading.Go(func() {
		if n, err := io.ReadFull(conn, got); err != nil {
			t.Errorf("%v after %d bytes", err, n)
		}
	})
	if _, err := conn.Write(sent); err != nil {
		t.Fatal(err)
	}
	reading.Wait()
	if !bytes.Equal(got, sent) {
		t.Error("the bytes arrived in another order")
	}
}

func TestNothingPassesADelayThatWasCut(t *testing.T) {
	for roundTrip := 200 * time.Millisecond; ; roundTrip *= 2 {
		conn, r := delayed(t, roundTrip)
		begun := time.Now()
		if _, err := conn.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		r.Cut()
		if time.Since(begun) >= roundTrip {
			continue // on a busy machine it was cut after the answer
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("%d bytes passed a relay that was cut", n)
		}
		return
	}
}

// The end of a connection arrives after the bytes that were sent before it.
func TestTheEndIsDelayedToo(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	var serving sync.WaitGroup
	serving.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte("last bytes"))
		conn.Close()
	})
	delay := relay.NewDelay(50 * time.Millisecond)
	defer delay.Close()
	r := must.Get(relay.Listen([]string{listener.Addr().String()}, delay))(t)
	defer r.Cut()
	conn := must.Get(net.Dial("tcp", r.Addr()))(t)
	defer conn.Close()
	must.Do(t, conn.SetDeadline(time.Now().Add(watchdog.Patience)))
	if got, err := io.ReadAll(conn); err != nil || string(got) != "last bytes" {
		t.Errorf("%q, %v", got, err)
	}
	serving.Wait()
}
