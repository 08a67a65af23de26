package workers_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/workers"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// meeting is a server and a path on it for the workers of a test. It runs in a bubble of package
// synctest: waiting takes no time, and patience ends only if nothing else can happen.
type meeting struct {
	*testing.T
	server *zkserver.Server
}

func at(t *testing.T, test func(m meeting)) {
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.New(zkserver.Config{})
		t.Cleanup(func() { server.Close() })
		test(meeting{t, server})
	})
}

// open opens a session over a pipe.
func (m meeting) open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	cfg.Servers = []string{"pipe:1"}
	return zookeeper.Dialer(func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go m.server.ServeConn(server)
		return client, nil
	}).Open(ctx, cfg)
}

func (m meeting) session() recipes.Client {
	m.Helper()
	s := must.Get(m.open(m.Context(), recipes.SessionConfig{}))(m)
	m.Cleanup(func() { s.Close(context.Background()) })
	return s
}

func config(i, n int) workers.Config {
	return workers.Config{
		Path: "/bench/meet", Size: n, About: fmt.Sprintf("process %d", i), Experiment: "-contenders 2",
		Root: fmt.Sprintf("/bench/root-%d", i), Patience: time.Minute,
	}
}

// join makes n processes join at once. change changes the configuration of each.
func (m meeting) join(n int, change func(i int, cfg *workers.Config), joined func(i int, s recipes.Client, c *workers.Crew, err error)) {
	m.Helper()
	var joining sync.WaitGroup
	for i := range n {
		s, cfg := m.session(), config(i, n)
		change(i, &cfg)
		joining.Go(func() {
			c, err := workers.Join(m.Context(), s, cfg)
			if err == nil {
				m.Cleanup(c.Close)
			}
			joined(i, s, c, err)
		})
	}
	joining.Wait()
}

// meet makes n processes join, and returns their crews and sessions.
func (m meeting) meet(n int) ([]*workers.Crew, []recipes.Client) {
	m.Helper()
	crews, sessions := make([]*workers.Crew, n), make([]recipes.Client, n)
	m.join(n, func(int, *workers.Config) {}, func(i int, s recipes.Client, c *workers.Crew, err error) {
		if crews[i], sessions[i] = c, s; err != nil {
			m.Error(err)
		}
	})
	if m.Failed() {
		m.FailNow()
	}
	return crews, sessions
}

func run(crew *workers.Crew, n int, e bench.Experiment) (whole []record.Record, err error) {
	defer crew.Close()
	e.Root = crew.Root()
	e.Part = &bench.Part{Number: crew.Number(), Of: n, Begin: crew.Begin, End: crew.End}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	for _, trial := range e.Trials() {
		r, err := e.Run(crew.Context(), trial)
		if err != nil {
			return nil, err
		}
		all, err := crew.Give(crew.Context(), r)
		if err != nil {
			return nil, err
		}
		if all == nil {
			continue
		}
		if r, err = bench.Merge(all); err != nil {
			return nil, err
		}
		whole = append(whole, r)
	}
	crew.Finish(crew.Context())
	return whole, nil
}

func TestWorkersMeasureOneLineTogether(t *testing.T) {
	at(t, func(m meeting) {
		const n, each = 3, 4
		e := bench.Experiment{
			Recipes: []load.Recipe{load.Lock}, Strategies: []recipes.Strategy{recipes.Predecessor}, Contenders: []int{each},
			Workloads:  []load.Workload{load.Drain, load.Cycle, load.Open, load.Many},
			Transports: []bench.Transport{{Name: "direct", Open: m.open}},
			Count:      1, Duration: 500 * time.Millisecond, Warmup: 10 * time.Millisecond, Hold: time.Millisecond, Rate: 50, Lines: 2,
			Session: recipes.SessionConfig{Servers: []string{"pipe:1"}},
		}
		crews, _ := m.meet(n)
		var whole []record.Record
		var running sync.WaitGroup
		for _, crew := range crews {
			running.Go(func() {
				records, err := run(crew, n, e)
				if err != nil {
					m.Error(err)
				}
				if crew.Number() == 1 {
					whole = records
				} else if len(records) > 0 {
					m.Errorf("worker %d got records", crew.Number())
				}
			})
		}
		running.Wait()
		if len(whole) != len(e.Workloads) {
			m.Fatalf("%d records; want one for each workload", len(whole))
		}
		for _, r := range whole {
			if r.Workers != n || !strings.Contains(r.Name(), "/workers=3") {
				m.Errorf("%s does not say that there were three workers", r.Name())
			}
			contenders, lines, rate := n*each, 0, 0.0
			switch r.Workload {
			case load.Drain:
				if r.Operations != n*each-1 || r.Counters.WatchEvents != n*each-1 || r.Counters.Writes != n*each {
					m.Errorf("drain: %d handoffs, %d watch events, %d writes; want %d, as many, and one release more", r.Operations, r.Counters.WatchEvents, r.Counters.Writes, n*each-1)
				}
			case load.Cycle:
				var turns int64
				for _, n := range r.Turns {
					turns += n
				}
				if len(r.Turns) != n*each || turns != r.Operations+1 || r.Wait.TotalCount() == 0 {
					m.Errorf("cycle: turns %v, %d handoffs", r.Turns, r.Operations)
				}
			case load.Open:
				rate = 3 * 50
			case load.Many:
				contenders, lines = each, 2*n
			}
			if r.Contenders != contenders || r.Lines != lines || r.Rate != rate || r.Grants != nil {
				m.Errorf("%s: %d contenders, %d lines, rate %v", r.Name(), r.Contenders, r.Lines, r.Rate)
			}
		}
	})
}

// A missing worker is named, at least by its number.
func TestWorkerThatNeverComesIsNamed(t *testing.T) {
	at(t, func(m meeting) {
		cfg := config(1, 3)
		cfg.Patience = 50 * time.Millisecond
		_, err := workers.Join(m.Context(), m.session(), cfg)
		if err == nil || !strings.HasSuffix(err.Error(), ": missing worker 2, worker 3; there are worker 1 (process 1)") {
			m.Errorf("%v; want that workers 2 and 3 are missing", err)
		}
		// Its number is free again.
		m.meet(3)
	})
}

func TestWorkerThatDiesIsNamedByTheOthers(t *testing.T) {
	at(t, func(m meeting) {
		crews, sessions := m.meet(3)
		var dead *workers.Crew
		var victim recipes.Client
		for i, c := range crews {
			if c.Number() == 2 {
				dead, victim = c, sessions[i]
			}
		}
		var waiting sync.WaitGroup
		for _, c := range crews {
			if c == dead {
				continue
			}
			waiting.Go(func() {
				err := c.Begin(c.Context())
				if err == nil || !strings.Contains(err.Error(), ": missing worker 2 (process ") || strings.Count(err.Error(), "worker 2") != 1 {
					m.Errorf("worker %d: %v; want that worker 2 is missing, and who that was", c.Number(), err)
				}
			})
		}
		if !m.server.ExpireSession(victim.ID()) {
			m.Fatal("its session was not there")
		}
		waiting.Wait()
	})
}

func TestWaitForAnIdleWorkerEnds(t *testing.T) {
	at(t, func(m meeting) {
		m.join(2, func(_ int, cfg *workers.Config) { cfg.Patience = 100 * time.Millisecond }, func(_ int, _ recipes.Client, c *workers.Crew, err error) {
			if err != nil {
				m.Error(err)
			} else if c.Number() == 1 { // the other worker idles
				if err := c.Begin(c.Context()); err == nil || !strings.Contains(err.Error(), "not all of them came") {
					m.Errorf("%v; want that not all came", err)
				}
			}
		})
	})
}

func TestWorkersWithDifferentFlagsDoNotRun(t *testing.T) {
	at(t, func(m meeting) {
		m.join(2, func(i int, cfg *workers.Config) { cfg.Experiment = fmt.Sprintf("-contenders %d", 5+i) }, func(_ int, _ recipes.Client, _ *workers.Crew, err error) {
			if err == nil || !strings.Contains(err.Error(), "-contenders 5") || !strings.Contains(err.Error(), "-contenders 6") {
				m.Errorf("%v; want both experiments", err)
			}
		})
	})
}

func TestOneRunAtATimeMeetsAtAPath(t *testing.T) {
	at(t, func(m meeting) {
		m.meet(2)
		if _, err := workers.Join(m.Context(), m.session(), config(3, 2)); err == nil || !strings.Contains(err.Error(), "all numbers of workers (2) at /bench/meet are taken") {
			m.Errorf("%v; want that all places are taken", err)
		}
	})
}

func TestRecordThatDoesNotFitIsRefused(t *testing.T) {
	at(t, func(m meeting) {
		crews, _ := m.meet(2)
		r := record.Record{Recipe: load.Lock, Workload: load.Cycle, Contenders: 2, Trial: 7, Measurement: load.Measurement{Operations: 1}}
		for i := range 1 << 17 {
			at := time.Duration(uint64(i)*0x9e3779b97f4a7c15>>8) % time.Hour // not compressible
			r.Grants = append(r.Grants, load.Grant{Token: recipes.Token(i + 1), Granted: at, Left: at})
		}
		if _, err := crews[0].Give(crews[0].Context(), r); !errors.Is(err, recipes.ErrTooLarge) || !strings.Contains(err.Error(), "trial 7 (131072 grants") {
			m.Errorf("%v; want that it is too large", err)
		}
	})
}
