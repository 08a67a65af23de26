package main

import (
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestHandoffHasTheRoundTripsThatThePlanAssumes measures handoffs through a slow relay. A
// handoff cannot be faster than its round trips. The fastest of them is slower by less
// than one, unless the machine is busy all the time. What that adds does not grow with a
// round trip, so a longer one tells. Package plan assumes these numbers where no records
// tell.
func TestHandoffHasTheRoundTripsThatThePlanAssumes(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			want := plan.RoundTrips(strategy)
			for rtt := 150 * time.Millisecond; ; rtt *= 2 {
				fastest := fastestHandoff(t, strategy, rtt)
				got := int(fastest / (rtt - rtt/50)) // the histogram rounds
				if got == want {
					return
				}
				if got < want || rtt > time.Second {
					t.Fatalf("the fastest handoff takes %v, %d round trips of %v; want %d", fastest, got, rtt, want)
				}
			}
		})
	}
}

// fastestHandoff is that of six contenders with that round trip to their server.
func fastestHandoff(t *testing.T, strategy recipes.Strategy, rtt time.Duration) time.Duration {
	t.Helper()
	server, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	file := filepath.Join(t.TempDir(), "records.jsonl")
	code, _, stderr := whole(t, "run", "-servers", slowly(t, server.Addr(), rtt/2), "-recipe", "lock", "-strategy", string(strategy),
		"-contenders", "6", "-count", "1", "-record", file)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	run, err := readRun(file)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(run[0].Records[0].Handoff.Min())
}

// slowly relays connections to addr, with everything that is sent late by delay.
func slowly(t *testing.T, addr string, delay time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", addr)
			if err != nil {
				_ = near.Close()
				continue
			}
			go late(far, near, delay)
			go late(near, far, delay)
		}
	}()
	return listener.Addr().String()
}

// late copies what it reads, each part after the delay, until one of both is closed.
// Then it closes both.
func late(to io.WriteCloser, from io.ReadCloser, delay time.Duration) {
	type part struct {
		bytes []byte
		due   time.Time
	}
	parts := make(chan part, 1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for p := range parts {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				_ = from.Close()
			}
		}
	}()
	for buffer := make([]byte, 64<<10); ; {
		n, err := from.Read(buffer)
		if n > 0 {
			parts <- part{append([]byte(nil), buffer[:n]...), time.Now().Add(delay)}
		}
		if err != nil {
			break
		}
	}
	close(parts)
	<-done
	_ = to.Close()
	_ = from.Close()
}
