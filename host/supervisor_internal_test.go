package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
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

// On a machine that starts hundreds of plugins at once, a plugin may get no processor for long. Only
// StartTimeout bounds the start.
func TestAPluginMayBeLateUntilStartTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := must.Get(Config{}.defaults())(t)
		listener, srv := bufconn.Listen(memory), server.New(server.Config{})
		g := grpc.NewServer(srv.Options()...)
		srv.Register(g)
		var serving sync.WaitGroup
		serving.Go(func() {
			time.Sleep(cfg.StartTimeout - time.Second) // it does not run
			_ = g.Serve(listener)
		})
		conn := must.Get(grpc.NewClient("passthrough:///memory", append(cfg.dialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...))(t)
		ctx, cancel := context.WithTimeout(t.Context(), cfg.StartTimeout)
		defer cancel()
		p, err := newPlugin(ctx, conn, nil, fakeProcess{ended: make(chan struct{})}, nil)
		if err != nil {
			t.Error(err)
		} else {
			must.Report(t, p.Close(t.Context()))
		}
		_ = conn.Close()
		g.Stop()
		serving.Wait()
		must.Report(t, srv.Close(t.Context()))
	})
}

// A plugin ends a session if its host sends no heartbeat. The host may not have run while it opened
// the session. The plugin runs, and opens another one.
func TestTheSessionOfAPluginThatRunsIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := zktest.Piped(t)
		refused := false
		p := must.Get(InProcess(func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
			if !refused {
				refused = true
				return nil, fmt.Errorf("%w: the host has sent no heartbeat", recipes.ErrPluginLost)
			}
			return dial.Open(ctx, cfg)
		}))(t)
		s := &Supervisor{plugin: p, change: make(chan struct{}), ctx: t.Context()}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		session, err := s.Open(ctx, recipes.SessionConfig{Servers: []string{"server"}})
		if err != nil {
			t.Error(err)
		} else {
			must.Report(t, session.Close(ctx))
		}
		must.Report(t, p.Close(ctx))
	})
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
