package host

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// SetPause replaces pauseTimeout. It is called before Upgrade.
func (s *Supervisor) SetPause(d time.Duration) { s.pause = d }

func TestBackoffDoublesUpToItsMost(t *testing.T) {
	b := &backoff{least: 100 * time.Millisecond, most: time.Second}
	expect := func(wants ...time.Duration) {
		t.Helper()
		for _, want := range wants {
			if got := b.next(); got < want*8/10 || got > want*12/10 {
				t.Errorf("%v; want about %v", got, want)
			}
		}
	}
	expect(100*time.Millisecond, 200*time.Millisecond, 400*time.Millisecond, 800*time.Millisecond, time.Second, time.Second)
	b.ran(time.Second - 1)
	expect(time.Second)
	b.ran(time.Second)
	expect(100*time.Millisecond, 200*time.Millisecond)
}

func TestTheDefaultsAreThoseOfTheDocumentation(t *testing.T) {
	if c, err := (Config{}).defaults(); err != nil || c.StartTimeout != time.Minute {
		t.Errorf("StartTimeout is %v, %v", c.StartTimeout, err)
	}
	for in, want := range map[[2]time.Duration][2]time.Duration{
		{}:               {100 * time.Millisecond, 30 * time.Second},
		{time.Minute, 0}: {time.Minute, time.Minute},
	} {
		c := SupervisorConfig{MinBackoff: in[0], MaxBackoff: in[1]}.defaults()
		if got := [2]time.Duration{c.MinBackoff, c.MaxBackoff}; got != want {
			t.Errorf("backoffs %v mean %v; want %v", in, got, want)
		}
	}
}

// noProcess is the peer of a plugin without a process.
type noProcess struct{ peer }

func (noProcess) pid() int { return 7 }

func TestAnUpgradeLogsTheCapabilitiesThatTheNewPluginLacks(t *testing.T) {
	can := func(names ...string) *Plugin { return &Plugin{peer: noProcess{}, can: names} }
	for name, test := range map[string]struct {
		old, now *Plugin
		want     bool
	}{
		"less":    {can("lock", "queue", "resume"), can("lock", "resume"), true},
		"more":    {can("lock", "resume"), can("lock", "queue", "resume"), false},
		"nothing": {nil, can("lock"), false},
	} {
		out := new(bytes.Buffer)
		s := &Supervisor{cfg: SupervisorConfig{Plugin: Config{Logger: hclog.New(&hclog.LoggerOptions{Output: out})}}}
		s.log(test.old, test.now)
		if said := out.String(); strings.Contains(said, `capabilities=["queue"]`) != test.want || !strings.Contains(said, "pid=7") {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// A goroutine of the shared client waits for a connection, and does not notice that the client is
// closed.
func TestCloseWaitsForTheSharedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := func(context.Context, string) (net.Conn, error) { return nil, errors.New("no plugin") }
		conn := must.Get(grpc.NewClient("passthrough:///none", append(link.DialOptions(nil, nil),
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(fails))...))(t)
		defer conn.Close()
		dialing := make(chan struct{})
		s := &Supervisor{client: client.Unconnected(), done: make(chan struct{})}
		s.ctx, s.cancel = context.WithCancel(t.Context())
		close(s.done)
		s.client.Use(s.client.Connect(conn, func(context.Context) (net.Conn, error) { <-dialing; return nil, net.ErrClosed }, nil), false)
		if _, err := s.client.Plugin().Open(t.Context(), recipes.SessionConfig{Servers: []string{"none"}}); err == nil {
			t.Error("a session without a plugin")
		}
		closed := false
		go func() { must.Report(t, s.Close(t.Context())); closed = true }()
		if synctest.Wait(); closed {
			t.Error("Close has not waited")
		}
		close(dialing)
		if synctest.Wait(); !closed {
			t.Error("Close still waits")
		}
	})
}
