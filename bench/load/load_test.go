package load_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

const path = "/bench/line"

// sessions opens sessions on a server of their own.
func sessions(t *testing.T, n int) []recipes.Client {
	t.Helper()
	all, _ := served(t, n)
	return all
}

// served opens n sessions with a new server, and returns both.
func served(t *testing.T, n int) ([]recipes.Client, *zkserver.Server) {
	t.Helper()
	srv, dial := zktest.Piped(t)
	all := make([]recipes.Client, n)
	for i := range all {
		all[i] = open(t, dial)
	}
	return all, srv
}

func open(t *testing.T, dial zookeeper.Dialer) recipes.Client {
	t.Helper()
	// A busy machine breaks no connection of such a timeout, so the counts stay exact.
	cfg := recipes.SessionConfig{Servers: []string{"server"}, MaxPacket: 64 << 10, SessionTimeout: time.Hour}
	s := must.Get(dial.Open(context.Background(), cfg))(t)
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// line returns the znodes of the contenders, in order.
func line(srv *zkserver.Server) (znodes []zkserver.Node) {
	for _, n := range srv.Tree() {
		if strings.HasPrefix(n.Path, path+"/") {
			znodes = append(znodes, n)
		}
	}
	slices.SortFunc(znodes, func(a, b zkserver.Node) int { return cmp.Compare(a.Stat.Czxid, b.Stat.Czxid) })
	return znodes
}

// empties waits until no contender is in line. Cancelled ones leave in the background.
func empties(t *testing.T, srv *zkserver.Server) {
	t.Helper()
	for ctx := watchdog.Bounded(t); len(line(srv)) > 0; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("%d contenders were left in line", len(line(srv)))
		}
	}
}

// apart excludes no other session from its locks and elections.
func apart(s recipes.Client) recipes.Client { return apartSession{s} }

type apartSession struct{ recipes.Client }

func (s apartSession) own(path string) string { return fmt.Sprint(path, "/", s.ID()) }

func (s apartSession) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	return s.Client.Lock(s.own(path), cfg)
}

func (s apartSession) Election(path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	return s.Client.Election(s.own(path), cfg)
}

// stale has the same token for all of its grants.
func stale(s recipes.Client) recipes.Client {
	return zktest.Hooked{Client: s, Acquire: func(ctx context.Context, l recipes.Lock) (recipes.Hold, error) {
		h, err := l.Acquire(ctx)
		return staleHold{h}, err
	}}
}

type staleHold struct{ recipes.Hold }

func (staleHold) Token() recipes.Token { return 1 }

// broken opens sessions with a defect.
func broken(t *testing.T, n int, defect func(recipes.Client) recipes.Client) []recipes.Client {
	t.Helper()
	all := sessions(t, n)
	for i := range all {
		all[i] = defect(all[i])
	}
	return all
}

func run(t *testing.T, l load.Load) load.Measurement {
	t.Helper()
	m := must.Get(l.Run(t.Context()))(t)
	return m
}

func TestDrainCountsWhatEveryHandoffCosts(t *testing.T) {
	for _, recipe := range []load.Recipe{load.Lock, load.Election} {
		for _, tt := range []struct {
			strategy               recipes.Strategy
			n                      int
			reads, writes, watches int64
		}{
			{recipes.Predecessor, 2, 2, 1, 1},
			{recipes.Predecessor, 100, 198, 99, 99},
			{recipes.Herd, 2, 2, 1, 1},
			{recipes.Handoff, 10, 0, 9, 17}, // the last contender has no successor to notify
		} {
			t.Run(string(recipe)+"/"+string(tt.strategy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					all, srv := served(t, tt.n)
					m := run(t, load.Load{
						Workload: load.Drain, Recipe: recipe, Strategy: tt.strategy, Path: path,
						Sessions: all,
					})
					handoffs := int64(tt.n) - 1
					if m.Operations != handoffs || m.Handoff.TotalCount() != handoffs {
						t.Errorf("%d operations, %d handoff times; want %d", m.Operations, m.Handoff.TotalCount(), handoffs)
					}
					c := m.Counters
					if c.Reads != tt.reads || c.Writes != tt.writes || c.WatchEvents != tt.watches {
						t.Errorf("%d reads, %d writes, %d watch events; want %d, %d, %d",
							c.Reads, c.Writes, c.WatchEvents, tt.reads, tt.writes, tt.watches)
					}
					if n := len(line(srv)); n != 0 {
						t.Errorf("%d contenders were left in line", n)
					}
				})
			})
		}
	}
}

// Without the wait for the head, the others would join long before it.
func TestTheFirstContenderHeadsTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, srv := served(t, 50)
		all[0] = zktest.Hooked{Client: all[0], Acquire: func(ctx context.Context, l recipes.Lock) (recipes.Hold, error) {
			time.Sleep(time.Second)
			return l.Acquire(ctx)
		}}
		began := false
		_, err := load.Load{
			Workload: load.Drain, Recipe: load.Lock, Strategy: recipes.Handoff, Path: path, Sessions: all,
			Begin: func(context.Context) error {
				began = true
				if owner := line(srv)[0].Stat.EphemeralOwner; owner != all[0].ID() {
					t.Errorf("session %#x heads the line; want %#x", owner, all[0].ID())
				}
				return nil
			},
		}.Run(t.Context())
		if err != nil || !began {
			t.Fatal(began, err)
		}
	})
}

// A grant may arrive when the load has ended, for example through a plugin.
func TestGrantsThatCrossTheEndAreReleased(t *testing.T) {
	all, srv := served(t, 5)
	for i := range all {
		all[i] = zktest.Hooked{Client: all[i], Acquire: func(ctx context.Context, l recipes.Lock) (recipes.Hold, error) {
			return l.Acquire(context.WithoutCancel(ctx)) // the wait is not cancelled
		}}
	}
	_, err := load.Load{
		Workload: load.Cycle, Recipe: load.Lock, Strategy: recipes.Handoff, Path: path, Sessions: all, Duration: time.Millisecond,
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	empties(t, srv)
}

func TestCycleKeepsTheLineFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, duration = 5, 30 * time.Millisecond
		all, srv := served(t, n)
		m := run(t, load.Load{
			Workload: load.Cycle, Recipe: load.Lock, Strategy: recipes.Predecessor, Path: path,
			Sessions: all, Duration: duration, Warmup: duration, Hold: time.Millisecond,
		})
		if m.Elapsed < duration || m.Operations < 1 {
			t.Errorf("%d operations in %v", m.Operations, m.Elapsed)
		}
		// Each operation is a deletion and a creation, and only whole operations count.
		if m.Counters.Writes != 2*m.Operations {
			t.Errorf("%d writes for %d operations; want two each", m.Counters.Writes, m.Operations)
		}
		if handoffs := m.Handoff.TotalCount(); handoffs > m.Operations {
			t.Errorf("%d handoffs of %d operations", handoffs, m.Operations)
		}
		// Contenders that waited when the measured part began had called Acquire before it.
		if waits := m.Wait.TotalCount(); waits > m.Operations || waits < m.Operations-(n-1) {
			t.Errorf("%d waits of %d operations", waits, m.Operations)
		}
		empties(t, srv)
	})
}

// If a line is too slow for the duration, it is measured until a contender that called Acquire
// in the measured part has been granted.
func TestCycleIsMeasuredForATurnOfTheLine(t *testing.T) {
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const n, hold = 5, time.Second
			m := run(t, load.Load{
				Workload: load.Cycle, Recipe: load.Lock, Strategy: recipes.Predecessor, Path: path, Shared: shared,
				Sessions: sessions(t, n), Duration: hold / 10, Hold: hold,
			})
			// A line of one process ends when the first contender that has joined again is
			// granted. In a shared line each process ends when all of its own contenders
			// have been granted.
			operations, waits := int64(n), int64(1)
			if shared {
				operations, waits = 2*n, n
			}
			if m.Operations != operations || m.Wait.TotalCount() != waits {
				t.Errorf("shared: %v: %d operations, %d waits; want %d and %d", shared, m.Operations, m.Wait.TotalCount(), operations, waits)
			}
		})
	}
}

func TestOneContenderIsMeasuredByItsTurns(t *testing.T) {
	for _, w := range []load.Workload{load.Drain, load.Cycle} {
		t.Run(string(w), func(t *testing.T) {
			const duration = 10 * time.Millisecond
			m := run(t, load.Load{
				Workload: w, Recipe: load.Election, Strategy: recipes.Herd, Path: path,
				Sessions: sessions(t, 1), Duration: duration,
			})
			if m.Handoff.TotalCount() != 0 {
				t.Errorf("%d handoffs of a single contender", m.Handoff.TotalCount())
			}
			if m.Operations < 1 || m.Counters.Writes != 2*m.Operations || m.Counters.WatchEvents != 0 {
				t.Errorf("%d turns, %d writes, %d watch events", m.Operations, m.Counters.Writes, m.Counters.WatchEvents)
			}
			if w == load.Drain && m.Operations != 100 {
				t.Errorf("%d turns; want 100", m.Operations)
			}
			if w == load.Cycle && m.Elapsed < duration {
				t.Errorf("ended after %v", m.Elapsed)
			}
		})
	}
}

func TestHandoffDoesNotContainTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hold = 20 * time.Millisecond
		m := run(t, load.Load{
			Workload: load.Drain, Recipe: load.Lock, Path: path, Hold: hold,
			Sessions: sessions(t, 4),
		})
		// The expected time has three handoffs with two holds between them.
		if m.Elapsed != 2*hold {
			t.Errorf("elapsed %v; want two holds of %v", m.Elapsed, hold)
		}
		if longest := time.Duration(m.Handoff.Max()); longest >= hold {
			t.Errorf("longest handoff %v has the hold of %v in it", longest, hold)
		}
		if shortest := time.Duration(m.Service.Min()); shortest < hold*99/100 {
			t.Errorf("shortest service %v lacks the hold of %v", shortest, hold)
		}
	})
}

func TestBrokenLockIsNotMeasured(t *testing.T) {
	for _, tt := range []struct {
		name    string
		recipe  load.Recipe
		defect  func(recipes.Client) recipes.Client
		n       int
		promise string
	}{
		{"two holders", load.Lock, apart, 5, "mutual exclusion"},
		{"two leaders", load.Election, apart, 5, "mutual exclusion"},
		{"stale tokens", load.Lock, stale, 5, "growing tokens"},
		{"stale tokens of one", load.Lock, stale, 1, "growing tokens"},
	} {
		for _, w := range []load.Workload{load.Drain, load.Cycle} {
			t.Run(tt.name+"/"+string(w), func(t *testing.T) {
				_, err := load.Load{
					Workload: w, Recipe: tt.recipe, Path: path, Sessions: broken(t, tt.n, tt.defect),
					Duration: time.Minute, Warmup: time.Minute,
				}.Run(t.Context())
				violation, ok := errors.AsType[*load.Violation](err)
				if !ok || !errors.Is(err, load.ErrBroken) {
					t.Fatalf("%v; want a violation", err)
				}
				// If two contenders are granted and leave at the same time, the guard
				// may see one after the other, with tokens in the wrong order.
				overtaken := w == load.Cycle && violation.Promise == "growing tokens"
				if violation.Promise != tt.promise && !overtaken {
					t.Errorf("violation of %s; want %s", violation.Promise, tt.promise)
				}
			})
		}
	}
}

func TestCancelledLoadLeavesNoContenderInLine(t *testing.T) {
	for _, w := range []load.Workload{load.Drain, load.Cycle} {
		t.Run(string(w), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all, srv := served(t, 50)
				ctx, cancel := context.WithCancel(t.Context())
				_, err := load.Load{
					Workload: w, Recipe: load.Lock, Path: path, Sessions: all,
					Duration: time.Hour, Hold: time.Hour,
					Begin: func(context.Context) error { cancel(); return nil },
				}.Run(ctx)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%v; want context.Canceled", err)
				}
				synctest.Wait() // until the others have left
				// The holder was cancelled and still holds, until its session is closed.
				if n := len(line(srv)); n > 1 {
					t.Errorf("%d contenders are still in line", n)
				}
			})
		})
	}
}

func TestErrorOfAHookEndsTheLoad(t *testing.T) {
	broken := errors.New("broken hook")
	hook := func(context.Context) error { return broken }
	for _, n := range []int{1, 3, 4} {
		for name, l := range map[string]load.Load{"begin": {Begin: hook}, "end": {End: hook}} {
			l.Workload, l.Recipe, l.Path = load.Drain, load.Lock, path
			if n == 4 {
				l.Workload, l.Lines, l.Duration = load.Many, 2, time.Millisecond
			}
			l.Sessions = sessions(t, n)
			if _, err := l.Run(t.Context()); !errors.Is(err, broken) {
				t.Errorf("%s with %d contenders: %v; want the hook's error", name, n, err)
			}
		}
	}
}

func TestLostSessionEndsTheLoad(t *testing.T) {
	all := sessions(t, 10)
	_, err := load.Load{
		Workload: load.Drain, Recipe: load.Election, Path: path, Sessions: all,
		Begin: func(ctx context.Context) error {
			for _, s := range slices.Backward(all) { // closes the holder's session last, so that no other contender is granted
				s.Close(ctx)
			}
			return nil
		},
	}.Run(t.Context())
	if !errors.Is(err, recipes.ErrSessionLost) {
		t.Errorf("%v; want ErrSessionLost", err)
	}
}

func TestLoadThatCannotBeRun(t *testing.T) {
	two := sessions(t, 2)
	for name, l := range map[string]load.Load{
		"no sessions":      {Workload: load.Drain, Recipe: load.Lock, Path: path},
		"unknown workload": {Workload: "sprint", Recipe: load.Lock, Path: path, Sessions: two},
		"unknown recipe":   {Workload: load.Drain, Recipe: "queue", Path: path, Sessions: two},
		"unknown strategy": {Workload: load.Drain, Recipe: load.Lock, Path: path, Strategy: "guess", Sessions: two},
		"bad path":         {Workload: load.Drain, Recipe: load.Lock, Path: "bench", Sessions: two},
	} {
		if _, err := l.Run(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }
