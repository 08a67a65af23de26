package load_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestFailoverTimesTheNextGrant(t *testing.T) {
	for _, recipe := range []load.Recipe{load.Lock, load.Election} {
		synctest.Test(t, func(t *testing.T) {
			const n = 5
			all := sessions(t, n)
			killed := -1
			m := run(t, load.Load{
				Workload: load.Failover, Recipe: recipe, Strategy: recipes.Predecessor, Path: path, Sessions: all,
				Kill: func(ctx context.Context, i int) error { killed = i; return all[i].Close(ctx) },
			})
			if m.Operations != 1 || m.Handoff.TotalCount() != 1 || m.Elapsed < 0 {
				t.Errorf("%s: %d failovers in %v, %d times; want one", recipe, m.Operations, m.Elapsed, m.Handoff.TotalCount())
			}
			if killed < 0 || m.Counters.WatchEvents > 1 {
				t.Errorf("%s: session %d killed, %d watch events; want at most one", recipe, killed, m.Counters.WatchEvents)
			}
		})
	}
}

// removeHolder deletes the first contender's znode, as another client can. If it holds, the next
// contender holds too.
func removeHolder(srv *zkserver.Server, s recipes.Client) {
	if b, err := s.Barrier(line(srv)[0].Path); err == nil {
		_ = b.Remove(context.Background()) // the test may end before the answer
	}
}

func TestFailoverFindsABrokenLock(t *testing.T) {
	for _, n := range []int{2, 5} {
		// If the defect exists from the start, all contenders hold at once. If it exists only after
		// the kill, two of the four survivors hold at once. With two contenders there is only one
		// survivor.
		for _, first := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				all, srv := served(t, n)
				for i := range all {
					if first {
						all[i] = apart(all[i])
					}
				}
				_, err := load.Load{
					Workload: load.Failover, Recipe: load.Lock, Strategy: recipes.Predecessor, Path: path, Sessions: all,
					Aftermath: time.Second,
					Kill: func(ctx context.Context, i int) error {
						err := all[i].Close(ctx)
						if synctest.Wait(); !first { // the next contender holds
							removeHolder(srv, all[1-min(i, 1)])
						}
						return err
					},
				}.Run(t.Context())
				if broken := first || n > 2; errors.Is(err, load.ErrBroken) != broken {
					t.Errorf("%d contenders, defect before the kill: %v: %v; broken: %v", n, first, err, broken)
				}
			})
		}
	}
}

func TestFailoverNeedsASuccessor(t *testing.T) {
	kill := func(context.Context, int) error { return nil }
	_, err := load.Load{
		Workload: load.Failover, Recipe: load.Lock, Path: path, Kill: kill,
		Sessions: sessions(t, 1),
	}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "at least 2 contenders") {
		t.Error(err)
	}
	broken := errors.New("cannot kill")
	_, err = load.Load{
		Workload: load.Failover, Recipe: load.Lock, Path: path,
		Kill:     func(context.Context, int) error { return broken },
		Sessions: sessions(t, 3),
	}.Run(t.Context())
	if !errors.Is(err, broken) {
		t.Errorf("%v; want the error of Kill", err)
	}
}

func TestOpenFollowsItsSchedule(t *testing.T) {
	for _, arrivals := range []load.Arrivals{load.Constant, load.Poisson} {
		synctest.Test(t, func(t *testing.T) {
			m := run(t, load.Load{
				Workload: load.Open, Recipe: load.Lock, Strategy: recipes.Predecessor, Path: path,
				Sessions: sessions(t, 3),
				Rate:     1000, Arrivals: arrivals, Seed: 5, Duration: 50 * time.Millisecond, Warmup: 5 * time.Millisecond,
			})
			if arrivals == load.Constant && m.Operations != 50 || m.Unfinished != 0 {
				t.Errorf("%s: %d acquisitions and %d unfinished; want 50 and none", arrivals, m.Operations, m.Unfinished)
			}
			all := m.Operations
			if m.Wait.TotalCount() != all || m.Late.TotalCount() != all || m.Service.TotalCount() != all {
				t.Errorf("%s: %d acquisitions, but %d waits, %d starts and %d services", arrivals, all,
					m.Wait.TotalCount(), m.Late.TotalCount(), m.Service.TotalCount())
			}
			if m.Elapsed != 50*time.Millisecond {
				t.Errorf("%s: measured %v; want the schedule's 50ms", arrivals, m.Elapsed)
			}
		})
	}
}

func TestOpenCancelsWhatIsNotGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := run(t, load.Load{
			Workload: load.Open, Recipe: load.Lock, Strategy: recipes.Predecessor, Path: path,
			Sessions: sessions(t, 2), Hold: 15 * time.Millisecond,
			Rate: 1000, Arrivals: load.Constant, Duration: 20 * time.Millisecond,
		})
		// In 40 ms a lock that is held for 15 ms is granted at 0, 15 and 30.
		if m.Operations != 3 || m.Unfinished != 17 {
			t.Errorf("%d acquisitions, %d unfinished; want 3 and 17", m.Operations, m.Unfinished)
		}
	})
}

// The first acquisition of a cold server takes longer than a short warm-up.
func TestOpenWaitsForAColdServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := sessions(t, 3)
		lock := must.Get(all[2].Lock(path, recipes.LockConfig{Strategy: recipes.Predecessor}))(t)
		hold := must.Get(lock.Acquire(t.Context()))(t)
		time.AfterFunc(100*time.Millisecond, func() { _ = hold.Release(context.Background()) })
		m, err := load.Load{
			Workload: load.Open, Recipe: load.Lock, Strategy: recipes.Predecessor, Path: path, Sessions: all[:2],
			Rate: 2, Arrivals: load.Constant, Duration: 500 * time.Millisecond, Warmup: 10 * time.Millisecond,
		}.Run(t.Context())
		if err != nil || m.Operations != 1 {
			t.Errorf("%d acquisitions, %v; want 1", m.Operations, err)
		}
	})
}

func TestOpenFindsABrokenLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := load.Load{
			Workload: load.Open, Recipe: load.Lock, Strategy: recipes.Predecessor, Path: path,
			Sessions: broken(t, 2, apart), Hold: 5 * time.Millisecond,
			Rate: 1000, Arrivals: load.Constant, Duration: 20 * time.Millisecond,
		}.Run(t.Context())
		if !errors.Is(err, load.ErrBroken) {
			t.Errorf("%v; want ErrBroken", err)
		}
	})
}

func TestManyLinesAreMeasuredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lines, each = 4, 3
		begun := 0
		m := run(t, load.Load{
			Workload: load.Many, Lines: lines, Recipe: load.Lock, Strategy: recipes.Predecessor, Path: path,
			Sessions: sessions(t, lines*each), Duration: 10 * time.Millisecond, Hold: time.Millisecond,
			Begin: func(context.Context) error { begun++; return nil },
		})
		if begun != 1 {
			t.Errorf("begun %d times; want once for all lines", begun)
		}
		var turns int64
		for _, n := range m.Turns {
			turns += n
		}
		if len(m.Turns) != lines*each || turns != m.Operations || m.Operations < lines {
			t.Errorf("%d operations, turns %v", m.Operations, m.Turns)
		}
		// One event for each handoff, except for contenders that found the line empty.
		if m.Counters.WatchEvents > m.Operations {
			t.Errorf("%d watch events for %d handoffs of predecessors; want at most one each", m.Counters.WatchEvents, m.Operations)
		}
	})
}

// A hold is longer than a contender needs to join again.
func TestCycleIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := run(t, load.Load{
			Workload: load.Cycle, Recipe: load.Lock, Strategy: recipes.Predecessor, Path: path,
			Sessions: sessions(t, 4), Duration: 40 * time.Millisecond, Hold: time.Millisecond,
		})
		// There are 41 handoffs, because the first one after the duration is the last that counts.
		if least, most := slices.Min(m.Turns), slices.Max(m.Turns); len(m.Turns) != 4 || least != 10 || most != 11 {
			t.Errorf("turns %v; want 10 each, and one more for one", m.Turns)
		}
	})
}

// TestReplayFollowsItsSchedule: the second acquisition comes while the first holds, and waits for it.
func TestReplayFollowsItsSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		l := load.Load{Recipe: load.Election, Strategy: recipes.Predecessor, Path: path, Sessions: sessions(t, 2)}
		m := must.Get(l.Replay(t.Context(), start.Add(time.Second), []load.Acquisition{
			{At: time.Second, Hold: 3 * time.Second}, {At: 2 * time.Second, Hold: time.Second, Session: 1}, {At: 10 * time.Second, Hold: time.Minute},
		}, time.Second))(t)
		if took := time.Since(start); took != 12*time.Second || m.Operations != 3 {
			t.Errorf("%v, %d acquisitions", took, m.Operations)
		}
		if m.Wait.Max() < int64(2*time.Second) || m.Wait.Max() > int64(2001*time.Millisecond) || m.Wait.ValueAtPercentile(50) > int64(time.Millisecond) {
			t.Errorf("waits %v and %v", m.Wait.ValueAtPercentile(50), m.Wait.Max())
		}
	})
}

// A wait counts from the scheduled time, even if the replay starts late.
func TestReplayCountsFromTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := load.Load{Recipe: load.Lock, Path: path, Sessions: sessions(t, 1)}
		m := must.Get(l.Replay(t.Context(), time.Now().Add(-time.Minute), []load.Acquisition{{At: time.Second}}, time.Hour))(t)
		if m.Wait.Max() < int64(59*time.Second) || m.Late.Max() < int64(59*time.Second) {
			t.Errorf("wait %v, late %v", m.Wait.Max(), m.Late.Max())
		}
	})
}

func TestReplayCancelsWhatIsNotGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := load.Load{Recipe: load.Lock, Path: path, Sessions: sessions(t, 1)}
		m := must.Get(l.Replay(t.Context(), time.Now(), []load.Acquisition{{Hold: time.Minute}, {Hold: time.Minute}, {Hold: time.Minute}}, time.Second))(t)
		if m.Operations != 1 || m.Unfinished != 2 {
			t.Errorf("%d acquisitions, %d unfinished", m.Operations, m.Unfinished)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Replay(ctx, time.Now(), []load.Acquisition{{At: time.Hour}}, time.Second); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// free grants every permit at once, for a lock that excludes nothing.
type free struct {
	recipes.Client
	reads *atomic.Int64 // calls of AcquireRead
	lost  error
}

func (f free) Err() error { return f.lost }

func (f free) Semaphore(string, recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	return freeSemaphore{}, nil
}

func (f free) SharedLock(string, recipes.SharedLockConfig) (recipes.SharedLock, error) {
	return freeShared{reads: f.reads}, nil
}

type (
	freeSemaphore struct{ recipes.Semaphore }
	freeShared    struct {
		recipes.SharedLock
		reads *atomic.Int64
	}
	freeHold struct{ recipes.SharedHold }
)

func (freeSemaphore) Acquire(context.Context) (recipes.Hold, error) { return freeHold{}, nil }

func (f freeShared) AcquireRead(context.Context) (recipes.SharedHold, error) {
	f.reads.Add(1)
	return freeHold{}, nil
}
func (freeShared) AcquireWrite(context.Context) (recipes.SharedHold, error) { return freeHold{}, nil }

func (freeHold) Token() recipes.Token          { return 1 }
func (freeHold) Release(context.Context) error { return nil }

// TestReplayChecksHoldersTogether: a semaphore may have as many holders as permits, and a shared
// lock any readers or one writer.
func TestReplayChecksHoldersTogether(t *testing.T) {
	hold := func(reads ...bool) (all []load.Acquisition) {
		for _, r := range reads {
			all = append(all, load.Acquisition{Hold: time.Second, Reads: r})
		}
		return all
	}
	for _, c := range []struct {
		recipe load.Recipe
		all    []load.Acquisition
		broken bool
	}{
		{"semaphore", hold(false, false), false},
		{"semaphore", hold(false, false, false), true},
		{"shared-lock", hold(true, true, true), false},
		{"shared-lock", hold(false, true), true},
		{"shared-lock", append(hold(true, true), load.Acquisition{At: 2 * time.Second}), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := load.Load{Recipe: c.recipe, Path: path, Sessions: []recipes.Client{free{reads: new(atomic.Int64)}}}
			if c.recipe == "semaphore" {
				l.Permits = 2
			}
			m, err := l.Replay(t.Context(), time.Now(), c.all, time.Minute)
			if errors.Is(err, load.ErrBroken) != c.broken || !c.broken && (err != nil || m.Operations != int64(len(c.all))) {
				t.Errorf("%s, %+v: %v, %d acquisitions", c.recipe, c.all, err, m.Operations)
			}
			reads := int64(0)
			for _, a := range c.all {
				if a.Reads {
					reads++
				}
			}
			if n := l.Sessions[0].(free).reads.Load(); !c.broken && n != reads {
				t.Errorf("%s, %+v: %d were read", c.recipe, c.all, n)
			}
		})
	}
}

func TestReplayFindsABrokenLock(t *testing.T) {
	for name, defect := range map[string]func(recipes.Client) recipes.Client{"two holders": apart, "stale tokens": stale} {
		synctest.Test(t, func(t *testing.T) {
			l := load.Load{Recipe: load.Lock, Path: path, Sessions: broken(t, 2, defect)}
			all := []load.Acquisition{{Hold: time.Second}, {At: 500 * time.Millisecond, Session: 1}}
			if _, err := l.Replay(t.Context(), time.Now(), all, time.Minute); !errors.Is(err, load.ErrBroken) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// Once a session has ended, its hold may be granted to another contender, even if the machine is
// too busy for the former holder to notice. The load then ends with the error of the session, which
// is not a violation.
func TestALostSessionIsNoViolation(t *testing.T) {
	for name, run := range map[string]func(ctx context.Context, l load.Load, lose func()) error{
		"drain": func(ctx context.Context, l load.Load, lose func()) error {
			l.Workload, l.Recipe = load.Drain, load.Lock
			l.Begin = func(context.Context) error { lose(); synctest.Wait(); return nil } // contender 1 holds
			_, err := l.Run(ctx)
			return err
		},
		"open": func(ctx context.Context, l load.Load, lose func()) error {
			l.Workload, l.Recipe, l.Hold = load.Open, load.Election, time.Minute
			l.Rate, l.Arrivals, l.Duration = 1, load.Constant, 10*time.Second
			l.Begin = func(context.Context) error { time.AfterFunc(time.Second, lose); return nil } // virtual
			_, err := l.Run(ctx)
			return err
		},
		"replay": func(ctx context.Context, l load.Load, _ func()) error {
			l.Recipe, l.Sessions = "semaphore", []recipes.Client{free{}, free{lost: recipes.ErrExpired}}
			_, err := l.Replay(ctx, time.Now(), []load.Acquisition{{Session: 1, Hold: time.Minute}, {Hold: time.Minute}}, time.Hour)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := sessions(t, 3)
				err := run(t.Context(), load.Load{Path: path, Sessions: all}, func() { all[0].Close(context.Background()) })
				if errors.Is(err, load.ErrBroken) || !errors.Is(err, recipes.ErrSessionLost) {
					t.Errorf("%v; want the loss of the session", err)
				}
			})
		})
	}
}
