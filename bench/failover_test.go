package bench_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// failovers returns an experiment of one failover of each recipe and strategy, on a
// server that grants sessions from 200 ms to a minute.
func failovers(t *testing.T, open recipes.Opener) (bench.Experiment, *zkserver.Server) {
	t.Helper()
	server := must.Get(zkserver.Listen(zkserver.Config{TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute}))(t)
	t.Cleanup(func() { server.Close() })
	return bench.Experiment{
		Recipes: []load.Recipe{load.Lock, load.Election}, Workloads: []load.Workload{load.Failover}, Strategies: recipes.Strategies(),
		Contenders: []int{3}, Transports: []bench.Transport{{Name: "direct", Open: open}}, Count: 1, Root: "/zkbench/failover",
		Session: recipes.SessionConfig{Servers: []string{server.Addr()}},
	}, server
}

// failover runs a trial. A short session timeout makes it short; if the machine is too busy to
// keep the sessions alive, it runs again with twice the timeout. It returns all other errors,
// such as a violation.
func failover(t *testing.T, e bench.Experiment, trial bench.Trial) (record.Record, error) {
	t.Helper()
	for timeout := 500 * time.Millisecond; ; timeout *= 2 {
		e.Session.SessionTimeout = timeout
		r, err := e.Run(t.Context(), trial)
		lost := errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, recipes.ErrUnavailable)
		if !lost || timeout > 30*time.Second {
			return r, err
		}
		t.Logf("with sessions of %v: %v", timeout, err)
	}
}

func TestLossIsReportedBeforeTheNextGrant(t *testing.T) {
	for name, fault := range map[string]func(zkserver.Request) zkserver.Fault{
		"quiet":                   nil,
		"connections that break":  func(r zkserver.Request) zkserver.Fault { return zkserver.Fault{CloseAfter: r.N%5 == 0} },
		"replies that never come": func(r zkserver.Request) zkserver.Fault { return zkserver.Fault{DropReply: r.N%7 == 0} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, server := failovers(t, zookeeper.Open)
			e.Recipes = e.Recipes[:1] // failovers of the other recipe take as long and take the same path here
			server.SetFault(fault)
			for _, trial := range e.Trials() {
				r := must.Get(failover(t, e, trial))(t)
				// The server expires the session one timeout after its last request.
				if r.Operations != 1 || r.Elapsed < 200*time.Millisecond {
					t.Errorf("%s: %d failovers in %v", r.Name(), r.Operations, r.Elapsed)
				}
			}
		})
	}
}

type counted struct {
	net.Listener
	accepted atomic.Int64
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return conn, err
}

// A failover with all sessions on one of several servers would be another experiment.
func TestSessionsOfAFailoverAreSpreadOverTheServers(t *testing.T) {
	e, server := failovers(t, zookeeper.Open)
	e.Recipes, e.Contenders, e.Session.Servers = e.Recipes[:1], []int{6}, nil
	doors := make([]counted, 3)
	for i := range doors {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		doors[i].Listener = l
		e.Session.Servers = append(e.Session.Servers, l.Addr().String())
		go server.Serve(&doors[i]) // until the server is closed
	}
	if _, err := failover(t, e, e.Trials()[0]); err != nil {
		t.Fatal(err)
	}
	for i := range doors {
		if n := doors[i].accepted.Load(); n < 2 {
			t.Errorf("server %d of 3 had %d connections of 6 sessions; want 2", i+1, n)
		}
	}
}

func TestRelaysOfAFailoverExpectTheCertificatesOfTheirServers(t *testing.T) {
	const n = 4
	names := make(chan string, n)
	var all sync.WaitGroup
	all.Add(n)
	e, _ := failovers(t, func(_ context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		names <- cfg.TLS.ServerName
		all.Done()
		all.Wait() // so that the first failure does not keep the others from being opened
		return nil, recipes.ErrUnavailable
	})
	e.Contenders, e.Session.TLS = []int{n}, &recipes.TLS{}
	e.Session.Servers = []string{"zk1.example:2281", "zk2.example:2281"}
	if _, err := e.Run(t.Context(), e.Trials()[0]); !errors.Is(err, recipes.ErrUnavailable) {
		t.Fatal(err)
	}
	expected := map[string]int{}
	for range n {
		expected[<-names]++
	}
	if want := map[string]int{"zk1.example": 2, "zk2.example": 2}; !maps.Equal(expected, want) {
		t.Errorf("certificates of %v are expected; want %v", expected, want)
	}
}

// A session that does not notice its loss is a violation, not a measurement.
func TestUnnoticedLossIsAViolation(t *testing.T) {
	e, _ := failovers(t, func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		s, err := zookeeper.Open(ctx, cfg)
		return unaware{s}, err
	})
	_, err := failover(t, e, e.Trials()[0])
	if !errors.Is(err, load.ErrBroken) || !strings.Contains(err.Error(), "loss before the next grant") {
		t.Errorf("%v; want a violation", err)
	}
}

// unaware is a session that never notices its loss.
type unaware struct{ recipes.Client }

func (unaware) Done() <-chan struct{} { return nil }
func (unaware) Err() error            { return nil }
