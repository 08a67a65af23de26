package relay_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

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
	conn, r := delayed(t, 200*time.Millisecond)
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	r.Cut()
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes passed a relay that was cut", n)
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
