package main

import (
	"bufio"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// However zkbench ends, its end of the pipe closes.
func TestARelayEndsWithItsParent(t *testing.T) {
	srv := zktest.Embedded(t)
	stdin, life := io.Pipe()
	said, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- command{stdout: stdout}.relayVerb(stdin, []string{srv.Addr(), srv.Addr()}) }()
	line := must.Get(bufio.NewReader(said).ReadString('\n'))(t)
	addrs := strings.Split(strings.TrimSpace(line), ",")
	if len(addrs) != 2 || addrs[0] == addrs[1] {
		t.Fatalf("relays at %q; want one for each server", addrs)
	}
	conn := must.Get(net.Dial("tcp", addrs[1]))(t)
	defer conn.Close()
	if _, err := conn.Write([]byte("ruok")); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(io.LimitReader(conn, 4)); err != nil || string(answer) != "imok" {
		t.Errorf("through the relay: %q, %v", answer, err)
	}
	life.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, addr := range addrs {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			t.Errorf("%s still answers", addr)
		}
	}
}

func TestRelaysToSeveralHostsNeedANameForTheirCertificates(t *testing.T) {
	_, err := launchRelay(t.Context(), settings{}, recipes.SessionConfig{
		Servers: []string{"zk1.example:2281", "zk2.example:2281"}, TLS: &recipes.TLS{},
	}, &cleanup{}, nil)
	if err == nil || !strings.Contains(err.Error(), "-tls-server-name") {
		t.Errorf("%v; want an error that names the flags to give", err)
	}
}

// TestHandoffHasTheRoundTripsThatThePlanAssumes measures handoffs over a slow network. A handoff
// cannot be faster than its round trips. The fastest one is slower by less than a round trip,
// unless the machine is busy all the time. That delay does not grow with the round trip, so the
// test tries longer ones. Package plan assumes these numbers for records at a single delay.
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

func fastestHandoff(t *testing.T, strategy recipes.Strategy, rtt time.Duration) time.Duration {
	t.Helper()
	server := zktest.Embedded(t)
	file := filepath.Join(t.TempDir(), "records.jsonl")
	code, _, stderr := whole(t, "run", "-servers", server.Addr(), "-delay", rtt.String(), "-recipe", "lock", "-strategy", string(strategy),
		"-contenders", "6", "-count", "1", "-record", file)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	run := must.Get(readRuns(file))(t)
	return time.Duration(run[0].Records[0].Handoff.Min())
}
