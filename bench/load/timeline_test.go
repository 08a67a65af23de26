package load_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	timelineHold    = 50 * time.Millisecond                // 20 grants a second
	timelineLength  = 20*time.Second - 10*time.Millisecond // no grant comes at the end of the timeline
	timelineTimeout = 3 * time.Second                      // of its sessions
)

// timelines has the load of a timeline of timelineLength on an in-process server, and what its hooks did. The
// sessions that are cut off are lost after timelineTimeout.
type timelines struct {
	load.Load
	srv      *zkserver.Server
	all      []recipes.Client // the current sessions, by number
	mu       sync.Mutex       // guards the fields below, and the elements of all
	opened   []recipes.Client // all sessions, in order
	reopened []int
	refused  int // how many times Reopen fails
	events   []string
	server   timelineServer
}

// timelineServer is a server that takes two seconds to start.
type timelineServer struct {
	say     func(string)
	failure error
}

func (s *timelineServer) Kill() error {
	s.say("killed")
	return nil
}

func (s *timelineServer) Restart(ctx context.Context) error {
	s.say("started")
	time.Sleep(2 * time.Second)
	return s.failure
}

func newTimelines(t *testing.T, n int, faults ...string) *timelines {
	t.Helper()
	x := new(timelines)
	srv, dial := zktest.Piped(t)
	x.srv = srv
	for range n {
		x.opened = append(x.opened, open(t, dial))
	}
	x.all = slices.Clone(x.opened)
	began := time.Now()
	say := func(what string) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.events = append(x.events, what+" "+time.Since(began).String())
	}
	x.server.say = say
	x.Load = load.Load{
		Workload: load.Timeline, Recipe: load.Lock, Strategy: recipes.Handoff, Path: path, Sessions: slices.Clone(x.all),
		Duration: timelineLength, Hold: timelineHold,
		Kill: func(_ context.Context, i int) error {
			x.mu.Lock()
			cut := x.all[i]
			x.mu.Unlock()
			time.AfterFunc(timelineTimeout, func() { cut.Close(context.Background()) }) // virtual
			return nil
		},
		Server: func(_ context.Context, v timeline.Victim) (timeline.Server, error) {
			say(string(v))
			return &x.server, nil
		},
		Reopen: func(ctx context.Context, i int) (recipes.Client, error) {
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.refused > 0 {
				x.refused--
				return nil, recipes.ErrUnavailable
			}
			x.all[i] = open(t, dial)
			x.reopened, x.opened = append(x.reopened, i), append(x.opened, x.all[i])
			return x.all[i], nil
		},
	}
	for _, text := range faults {
		x.Faults = append(x.Faults, must.Get(timeline.Parse(text))(t))
	}
	return x
}

// lose ends the session that was opened as number i.
func (x *timelines) lose(i int) {
	x.mu.Lock()
	s := x.opened[i]
	x.mu.Unlock()
	s.Close(context.Background())
}

func TestATimelineWithoutFaultsRecordsEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := run(t, newTimelines(t, 3).Load)
		if m.Operations != 400 || m.Elapsed != timelineLength || len(m.Timeline.Seconds) != 20 || len(m.Timeline.Faults) != 0 {
			t.Fatalf("%d grants in %v, %d seconds, %d faults; want 400, 19.99s, 20, 0", m.Operations, m.Elapsed, len(m.Timeline.Seconds), len(m.Timeline.Faults))
		}
		for i, s := range m.Timeline.Seconds[1:] {
			// A contender waits for the turns of the two others.
			if s.Grants != 20 || s.Wait.Max != 2*timelineHold || s.Wait.P50 != 2*timelineHold || s.Handoff.Max != 0 || s.Lost != 0 {
				t.Errorf("second %d: %+v; want 20 grants after waits of %v", i+1, s, 2*timelineHold)
			}
		}
		if m.Timeline.Before.Longest != timelineHold {
			t.Errorf("the longest time without a grant was %v; want %v", m.Timeline.Before.Longest, timelineHold)
		}
		if m.Wait.TotalCount() != 400 || m.Handoff.TotalCount() != 399 {
			t.Errorf("%d waits, %d handoffs; want 400 and 399", m.Wait.TotalCount(), m.Handoff.TotalCount())
		}
	})
}

// The holder that is cut off neither leaves nor loses its session before the timeout, so there is
// no grant until then. Its contender opens another session.
func TestAHolderThatIsCutOffStopsTheLineUntilItsSessionIsLost(t *testing.T) {
	for _, recipe := range []load.Recipe{load.Lock, load.Election} {
		synctest.Test(t, func(t *testing.T) {
			x := newTimelines(t, 3, "holder@5s", "holder@12s")
			x.Recipe, x.refused = recipe, 3
			m := run(t, x.Load)
			if len(m.Timeline.Faults) != 2 || len(x.reopened) != 2 {
				t.Fatalf("%+v, sessions %v were opened again; want two", m.Timeline.Faults, x.reopened)
			}
			for i, f := range m.Timeline.Faults {
				if f.Began < f.Fault.At || f.Began > f.Fault.At+timelineHold || f.Gap != (timeline.Gap{From: f.Began, Longest: timelineTimeout}) || !f.Recovered || f.Lost != 1 {
					t.Errorf("%s, fault %d: %+v; want a gap of %v and one lost session", recipe, i, f, timelineTimeout)
				}
			}
			for i, s := range m.Timeline.Seconds {
				if within := i == 6 || i == 7 || i == 13 || i == 14; within != (s.Grants == 0) {
					t.Errorf("%s, second %d: %d grants", recipe, i, s.Grants)
				}
			}
			// The grant after a loss is not a handoff.
			if m.Handoff.TotalCount() != m.Operations-3 || m.Handoff.Max() > int64(timelineHold) {
				t.Errorf("%s: %d handoffs of up to %v; %d grants", recipe, m.Handoff.TotalCount(), time.Duration(m.Handoff.Max()), m.Operations)
			}
		})
	}
}

func TestKilledServersAreStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTimelines(t, 3, "leader@4s:restart=3s", "follower@8s:restart=1s", "leader@19s")
		m := run(t, x.Load)
		// The first server serves at 9s, so the second fault is late. The last server is
		// started when the timeline ends.
		want := "leader 4s, killed 4s, started 7s, follower 9s, killed 9s, started 10s, leader 19s, killed 19s, started 19.99s"
		if got := strings.Join(x.events, ", "); got != want {
			t.Errorf("%s; want %s", got, want)
		}
		for i, want := range []timeline.Outcome{{Began: 4 * time.Second, Back: 9 * time.Second}, {Began: 9 * time.Second, Back: 12 * time.Second}, {Began: 19 * time.Second}} {
			if f := m.Timeline.Faults[i]; f.Began != want.Began || f.Back != want.Back || !f.Recovered || f.Gap.Longest != timelineHold {
				t.Errorf("fault %d: %+v; want %+v", i, f, want)
			}
		}
	})
}

func TestFaultsThatComeTooLateAreMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTimelines(t, 2, "holder@10s", "holder@11s", "leader@15s", "follower@16s", "holder@17s")
		x.Kill = func(context.Context, int) error { return nil } // its session is never lost
		server := x.Server
		x.Server = func(ctx context.Context, v timeline.Victim) (timeline.Server, error) {
			if v == timeline.Follower {
				<-ctx.Done() // like a cluster without a majority
				return nil, ctx.Err()
			}
			return server(ctx, v)
		}
		m := run(t, x.Load)
		if got := timeline.Text(m.Timeline.Missed); got != "follower@16s,holder@17s,holder@11s" || len(m.Timeline.Faults) != 2 {
			t.Errorf("%s were missed, %+v", got, m.Timeline.Faults)
		}
		if f := m.Timeline.Faults[1]; f.Recovered || f.Gap.Longest != timelineLength-15*time.Second {
			t.Errorf("%+v; want no recovery from 15s to the end", f)
		}
	})
}

// A session that is lost while another contender holds, or during a hold, does not end the
// timeline.
func TestSessionsThatAreLostAreReplacedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTimelines(t, 3)
		go func() {
			for i := range 6 { // all three sessions, and those that replace them
				time.Sleep(1020 * time.Millisecond)
				x.lose(i)
			}
		}()
		m := run(t, x.Load)
		var lost int64
		for _, s := range m.Timeline.Seconds {
			lost += s.Lost
		}
		if lost != 6 || len(x.reopened) != 6 {
			t.Errorf("%d sessions were lost, and %v opened again; want 6", lost, x.reopened)
		}
	})
}

// A single contender holds again after its loss, and a grant after its own release is not a
// handoff. It does not wait for the end of a hold that is lost.
func TestASingleContenderComesBackDuringALongHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTimelines(t, 1, "holder@7s")
		x.Hold = 5 * time.Second
		time.AfterFunc(time.Second, func() { x.lose(0) })
		m := run(t, x.Load)
		// Granted at 0s, 1s, 6s and 11s, and then cut off until 14s.
		var seconds []int
		for i, s := range m.Timeline.Seconds {
			if s.Grants > 0 {
				seconds = append(seconds, i)
			}
		}
		if !slices.Equal(seconds, []int{0, 1, 6, 11, 14, 19}) || m.Handoff.TotalCount() != 0 || len(x.reopened) != 2 {
			t.Errorf("granted in the seconds %v, %d handoffs, %d new sessions; want 0, 1, 6, 11, 14, 19, none and 2", seconds, m.Handoff.TotalCount(), len(x.reopened))
		}
	})
}

// A grant that comes after the end belongs to no second, and does not count.
func TestGrantsAfterTheEndOfATimelineDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTimelines(t, 1)
		x.Sessions[0] = zktest.Hooked{Client: x.Sessions[0], Acquire: func(ctx context.Context, l recipes.Lock) (recipes.Hold, error) {
			hold, err := l.Acquire(ctx)
			time.Sleep(2 * timelineHold)
			return hold, err
		}}
		m := run(t, x.Load)
		var grants int64
		for _, s := range m.Timeline.Seconds {
			grants += s.Grants
		}
		if want := int64(timelineLength / (3 * timelineHold)); m.Operations != want || grants != want || m.Wait.TotalCount() != want {
			t.Errorf("%d grants, %d in all seconds, %d waits; want %d", m.Operations, grants, m.Wait.TotalCount(), want)
		}
	})
}

func TestABrokenLockEndsATimeline(t *testing.T) {
	for promise, defect := range map[string]func(*timelines){
		"mutual exclusion": func(x *timelines) {
			s := x.all[0]
			time.AfterFunc(520*time.Millisecond, func() { removeHolder(x.srv, s) }) // during a hold
		},
		"growing tokens": func(x *timelines) { x.Sessions[2] = stale(x.Sessions[2]) },
	} {
		synctest.Test(t, func(t *testing.T) {
			x := newTimelines(t, 3, "holder@1s")
			defect(x)
			_, err := x.Run(t.Context())
			if !errors.Is(err, load.ErrBroken) || !strings.Contains(err.Error(), promise) {
				t.Errorf("%v; want a violation of %s", err, promise)
			}
		})
	}
}

// unaware does not report its loss.
type unaware struct{ recipes.Client }

func (unaware) Done() <-chan struct{} { return nil }

// A holder that does not notice that it was cut off still holds when the next contender is
// granted.
func TestAHolderThatDoesNotNoticeItsLossIsAViolation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTimelines(t, 3, "holder@1s")
		for i := range x.Sessions {
			x.Sessions[i] = unaware{x.Sessions[i]}
		}
		_, err := x.Run(t.Context())
		if !errors.Is(err, load.ErrBroken) || !strings.Contains(err.Error(), "had not reported the loss") {
			t.Errorf("%v; want a violation", err)
		}
	})
}

func TestATimelineEndsWithTheFailureOfAServerOrASession(t *testing.T) {
	broken := errors.New("broken")
	for name, change := range map[string]func(*timelines){
		"no server to kill": func(x *timelines) {
			x.Server = func(context.Context, timeline.Victim) (timeline.Server, error) { return nil, broken }
		},
		"a server does not come": func(x *timelines) { x.server.failure = broken },
		"no session": func(x *timelines) {
			x.Reopen = func(context.Context, int) (recipes.Client, error) { return nil, broken }
		},
		"no cut":                       func(x *timelines) { x.Kill = func(context.Context, int) error { return broken } },
		"the measurement cannot begin": func(x *timelines) { x.Begin = func(context.Context) error { return broken } },
		"the measurement cannot end":   func(x *timelines) { x.End = func(context.Context) error { return broken } },
	} {
		synctest.Test(t, func(t *testing.T) {
			x := newTimelines(t, 3, "leader@2s", "holder@10s")
			change(x)
			if _, err := x.Run(t.Context()); !errors.Is(err, broken) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(broken) })
		if _, err := newTimelines(t, 3).Run(ctx); !errors.Is(err, broken) {
			t.Errorf("interrupted: %v", err)
		}
	})
}
