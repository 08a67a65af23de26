package verb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// outage is a plugin for which no server answers until a certain time.
type outage struct{ until time.Time }

func (o *outage) Close(context.Context) error { return nil }

func (o *outage) Open(ctx context.Context, _ recipes.SessionConfig) (recipes.Client, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
		defer cancel()
	}
	timer := time.NewTimer(time.Until(o.until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return openSession{}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("open session: %w: %w", recipes.ErrUnavailable, ctx.Err())
	}
}

type openSession struct{ recipes.Client }

func (openSession) Close(context.Context) error { return nil }
func (openSession) State() recipes.State        { return recipes.Connected }
func (openSession) Done() <-chan struct{}       { return nil }

// configure makes the tool independent of the configuration of this machine.
func configure(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ZKRECIPES_CONFIG", "")
	t.Setenv("ZKRECIPES_SERVERS", "zk")
}

// toolOf returns a tool that starts plugins with launch.
func toolOf(launch func() Plugin) *Tool {
	tl := NewTool(&strings.Builder{}, &strings.Builder{})
	tl.Launch = func(context.Context, host.Config) (Plugin, error) { return launch(), nil }
	return tl
}

// awaitDuring runs Await. For the first part of it, which lasts out, no server answers.
func awaitDuring(t *testing.T, out time.Duration, p Patience, takes ...error) (attempts, starts int, err error) {
	configure(t)
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(out)
		tl := toolOf(func() Plugin {
			starts++
			return &outage{until}
		})
		err = Await(t.Context(), tl, p,
			func(context.Context, recipes.Client) (int, error) {
				attempts++
				if attempts <= len(takes) {
					return 0, takes[attempts-1]
				}
				return attempts, nil
			},
			func(got int) error {
				if got != attempts {
					t.Errorf("used %d of %d", got, attempts)
				}
				return nil
			})
	})
	return attempts, starts, err
}

// TestOutageBeforeTheGrant: Await waits until the outage ends, for -timeout at most.
func TestOutageBeforeTheGrant(t *testing.T) {
	for _, tt := range []struct {
		outage  time.Duration
		p       Patience
		takes   []error
		want    int // the exit code
		takings int
	}{
		{time.Hour, Patience{Failure: "nothing"}, nil, 0, 1},
		{time.Hour, Patience{Failure: "nothing", Timeout: 2 * time.Hour}, nil, 0, 1},
		{time.Hour, Patience{Failure: "nothing", Timeout: time.Minute}, nil, exit.Failed, 0},
		{time.Hour, Patience{Failure: "nothing", Try: true}, nil, exit.Failed, 0},
		{0, Patience{}, []error{recipes.ErrExpired, recipes.ErrPluginLost, recipes.ErrDeadline}, 0, 4},
		{0, Patience{Try: true}, []error{recipes.ErrExpired}, exit.Failed, 1},
		{0, Patience{}, []error{recipes.ErrExpired, recipes.ErrAuthFailed}, exit.Failed, 2},
		{0, Patience{}, []error{recipes.ErrExpired, recipes.ErrAccessDenied}, exit.Failed, 2},
		{0, Patience{}, []error{fmt.Errorf("%w: %w", recipes.ErrUnknownOutcome, recipes.ErrExpired)}, exit.Failed, 1},
		{0, Patience{}, []error{exit.With(exit.Absent, "%w", recipes.ErrExpired)}, exit.Absent, 1},
		{0, Patience{Timeout: time.Minute}, []error{context.DeadlineExceeded}, exit.Timeout, 1},
	} {
		t.Run(fmt.Sprintf("%v %+v %v", tt.outage, tt.p, tt.takes), func(t *testing.T) {
			takings, starts, err := awaitDuring(t, tt.outage, tt.p, tt.takes...)
			if exit.Code(err, exit.Failed) != tt.want || takings != tt.takings || starts != 1 {
				t.Errorf("%v (%d) after %d attempts with %d plugins; want %d after %d", err, exit.Code(err, exit.Failed), takings, starts, tt.want, tt.takings)
			}
		})
	}
}

func TestSessionIsNotReplacedAfterTheGrant(t *testing.T) {
	configure(t)
	synctest.Test(t, func(t *testing.T) {
		tl := toolOf(func() Plugin { return &outage{} })
		taken := 0
		err := Await(t.Context(), tl, Patience{},
			func(context.Context, recipes.Client) (struct{}, error) { taken++; return struct{}{}, nil },
			func(struct{}) error { return recipes.ErrExpired })
		if !errors.Is(err, recipes.ErrExpired) || taken != 1 {
			t.Errorf("%v after %d", err, taken)
		}
	})
}

// TestSignalEndsTheOutage: the exit code is that of the signal.
func TestSignalEndsTheOutage(t *testing.T) {
	configure(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		tl := toolOf(func() Plugin { return &outage{time.Now().Add(24 * time.Hour)} })
		signal := job.Interruption{Signal: os.Interrupt}
		time.AfterFunc(time.Hour, func() { cancel(signal) })
		err := Await(ctx, tl, Patience{Failure: "it was not granted"},
			func(context.Context, recipes.Client) (struct{}, error) { return struct{}{}, nil },
			func(struct{}) error { return nil })
		if got := exit.Code(err, exit.Failed); got != 130 || err.Error() != signal.Error()+": it was not granted" {
			t.Errorf("%d: %v", got, err)
		}
	})
}

// stateSession is a session that has this state when the wait ends.
type stateSession struct {
	openSession
	state recipes.State
}

func (s stateSession) State() recipes.State { return s.state }

// TestExitCodeDistinguishesAnOutageFromAHeldLock: when the timeout has passed, only a
// connected session shows that another client holds the lock. That applies to verbs with a
// command and to the others, whose errors get codes from exit.Coded.
func TestExitCodeDistinguishesAnOutageFromAHeldLock(t *testing.T) {
	configure(t)
	deadline := fmt.Errorf("lock /l: %w", context.DeadlineExceeded)
	for _, tt := range []struct {
		state recipes.State
		err   error
		late  bool // the timeout passes in use, not in take
		want  int
	}{
		{recipes.Connected, deadline, false, exit.Timeout},
		{recipes.Connected, deadline, true, exit.Timeout},
		{recipes.Suspended, deadline, false, exit.Own},
		{recipes.Suspended, deadline, true, exit.Own},
		{recipes.Lost, recipes.ErrDeadline, false, exit.Own},
		{recipes.Suspended, fmt.Errorf("%w: %w", recipes.ErrUnavailable, context.DeadlineExceeded), false, exit.Own},
	} {
		for _, p := range []Patience{{Timeout: time.Minute}, {Timeout: time.Minute, Failure: "/l was not granted", Hint: "look"}} {
			t.Run(fmt.Sprintf("%v %v %v %q", tt.state, tt.err, tt.late, p.Failure), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tl := toolOf(func() Plugin { return &opening{stateSession{state: tt.state}} })
					err := exit.Coded(Await(t.Context(), tl, p,
						func(ctx context.Context, _ recipes.Client) (context.Context, error) {
							if tt.late {
								return ctx, nil
							}
							<-ctx.Done()
							return nil, tt.err
						},
						func(ctx context.Context) error { <-ctx.Done(); return tt.err }))
					if got := exit.Code(err, exit.Own); got != tt.want || !strings.Contains(err.Error(), p.Failure) {
						t.Errorf("%v (%d), want %d", err, got, tt.want)
					}
				})
			})
		}
	}
}

// opening is a plugin that opens this session.
type opening struct{ session recipes.Client }

func (o *opening) Close(context.Context) error { return nil }
func (o *opening) Open(context.Context, recipes.SessionConfig) (recipes.Client, error) {
	return o.session, nil
}

// TestRequestWithoutAnswerIsAFailure: this is also true for verbs that do not wait for other
// clients.
func TestRequestWithoutAnswerIsAFailure(t *testing.T) {
	configure(t)
	for state, want := range map[recipes.State]int{recipes.Connected: exit.Timeout, recipes.Suspended: exit.Failed} {
		tl := toolOf(func() Plugin { return &opening{stateSession{state: state}} })
		err := Once(t.Context(), tl, Itself, func(context.Context, recipes.Client) error {
			return fmt.Errorf("read /q: %w", context.DeadlineExceeded)
		})
		if got := exit.Code(err, exit.Failed); got != want {
			t.Errorf("%v: %v (%d), want %d", state, err, got, want)
		}
	}
}

// TestConnectTimeoutLimitsVerbsThatDoNotWait: -try, and a request. A verb that waits for other
// clients also waits for servers.
func TestConnectTimeoutLimitsVerbsThatDoNotWait(t *testing.T) {
	configure(t)
	await := func(tl *Tool, p Patience) error {
		return Await(context.Background(), tl, p, func(context.Context, recipes.Client) (int, error) { return 0, nil }, func(int) error { return nil })
	}
	for name, run := range map[string]func(*Tool) error{
		"try": func(tl *Tool) error { return await(tl, Patience{Try: true}) },
		"request": func(tl *Tool) error {
			return Once(context.Background(), tl, Itself, func(context.Context, recipes.Client) error { return nil })
		},
		"wait": func(tl *Tool) error { return await(tl, Patience{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tl := toolOf(func() Plugin { return &outage{time.Now().Add(time.Hour)} })
				tl.connectTimeout = 5 * time.Second
				begun := time.Now()
				err := run(tl)
				if took := time.Since(begun); name != "wait" && (err == nil || took != 5*time.Second) || name == "wait" && err != nil {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// Poll reads again after each pause, until read fails.
func TestPollEndsWithAnError(t *testing.T) {
	configure(t)
	ctx, cancel := context.WithCancel(t.Context())
	reads, broken := 0, errors.New("broken")
	err := Poll(ctx, toolOf(func() Plugin { return &outage{} }), func(context.Context, recipes.Client) (time.Duration, error) {
		switch reads++; reads {
		case 3:
			return 0, broken
		case 4:
			cancel()
		}
		return time.Nanosecond, nil
	})
	if !errors.Is(err, broken) || reads != 3 {
		t.Errorf("%v after %d reads", err, reads)
	}
}
