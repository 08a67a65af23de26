package relay_test

import (
	"io"
	"net"
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
