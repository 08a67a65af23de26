package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// outage is a plugin for which no server answers until a certain time.
type outage struct {
	until  time.Time
	exited chan struct{}
}

func (o *outage) Exited() <-chan struct{}     { return o.exited }
func (o *outage) Close(context.Context) error { return nil }

func (o *outage) Open(ctx context.Context, _ recipes.SessionConfig) (recipes.Session, error) {
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

type openSession struct{ recipes.Session }

func (openSession) Close(context.Context) error { return nil }
func (openSession) State() recipes.State        { return recipes.Connected }

// awaitDuring runs await while no server answers for so long.
func awaitDuring(t *testing.T, out time.Duration, p patience, takes ...error) (attempts, starts int, err error) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ZKRECIPES_CONFIG", "")
	t.Setenv("ZKRECIPES_SERVERS", "zk")
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		until := time.Now().Add(out)
		tl := newTool(&said, &said)
		tl.launch = func(context.Context, host.Config) (launchedPlugin, error) {
			starts++
			return &outage{until, make(chan struct{})}, nil
		}
		err = await(t.Context(), tl, &output{stdout: &said, stderr: &said}, p,
			func(context.Context, recipes.Session) (int, error) {
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

// TestOutageBeforeTheGrant: it is waited out, for -timeout at most.
func TestOutageBeforeTheGrant(t *testing.T) {
	for _, tt := range []struct {
		outage  time.Duration
		p       patience
		takes   []error
		want    int // the exit code
		takings int
	}{
		{time.Hour, patience{failure: "nothing"}, nil, 0, 1},
		{time.Hour, patience{failure: "nothing", timeout: 2 * time.Hour}, nil, 0, 1},
		{time.Hour, patience{failure: "nothing", timeout: time.Minute}, nil, exitFailed, 0},
		{time.Hour, patience{failure: "nothing", try: true}, nil, exitFailed, 0},
		{0, patience{}, []error{recipes.ErrExpired, recipes.ErrPluginLost, recipes.ErrDeadline}, 0, 4},
		{0, patience{try: true}, []error{recipes.ErrExpired}, exitFailed, 1},
		{0, patience{}, []error{recipes.ErrExpired, recipes.ErrAuthFailed}, exitFailed, 2},
		{0, patience{}, []error{recipes.ErrExpired, recipes.ErrAccessDenied}, exitFailed, 2},
		{0, patience{}, []error{fmt.Errorf("%w: %w", recipes.ErrUnknownOutcome, recipes.ErrExpired)}, exitFailed, 1},
		{0, patience{}, []error{exitWith(exitAbsent, "%w", recipes.ErrExpired)}, exitAbsent, 1},
		{0, patience{timeout: time.Minute}, []error{context.DeadlineExceeded}, exitTimeout, 1},
	} {
		t.Run(fmt.Sprintf("%v %+v %v", tt.outage, tt.p, tt.takes), func(t *testing.T) {
			takings, starts, err := awaitDuring(t, tt.outage, tt.p, tt.takes...)
			if code(err, exitFailed) != tt.want || takings != tt.takings || starts != 1 {
				t.Errorf("%v (%d) after %d attempts with %d plugins; want %d after %d", err, code(err, exitFailed), takings, starts, tt.want, tt.takings)
			}
		})
	}
}

// TestNothingIsReplacedAfterTheGrant.
func TestNothingIsReplacedAfterTheGrant(t *testing.T) {
	t.Setenv("ZKRECIPES_CONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ZKRECIPES_SERVERS", "zk")
	synctest.Test(t, func(t *testing.T) {
		tl := newTool(&strings.Builder{}, &strings.Builder{})
		tl.launch = func(context.Context, host.Config) (launchedPlugin, error) {
			return &outage{exited: make(chan struct{})}, nil
		}
		taken := 0
		err := await(t.Context(), tl, &output{stdout: tl.stdout, stderr: tl.stderr}, patience{},
			func(context.Context, recipes.Session) (struct{}, error) { taken++; return struct{}{}, nil },
			func(struct{}) error { return recipes.ErrExpired })
		if !errors.Is(err, recipes.ErrExpired) || taken != 1 {
			t.Errorf("%v after %d", err, taken)
		}
	})
}

// TestPluginThatHasEndedIsLaunchedAgain.
func TestPluginThatHasEndedIsLaunchedAgain(t *testing.T) {
	t.Setenv("ZKRECIPES_CONFIG", "")
	t.Setenv("HOME", filepath.Join(t.TempDir(), "home"))
	t.Setenv("ZKRECIPES_SERVERS", "zk")
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		exited := make(chan struct{})
		tl := newTool(&strings.Builder{}, &strings.Builder{})
		tl.launch = func(context.Context, host.Config) (launchedPlugin, error) {
			starts++
			return &outage{exited: exited}, nil
		}
		err := await(t.Context(), tl, &output{stdout: tl.stdout, stderr: tl.stderr}, patience{},
			func(context.Context, recipes.Session) (struct{}, error) {
				if starts == 1 {
					close(exited)
					exited = make(chan struct{})
					return struct{}{}, recipes.ErrPluginLost
				}
				return struct{}{}, nil
			},
			func(struct{}) error { return nil })
		if err != nil || starts != 2 {
			t.Errorf("%v after %d starts", err, starts)
		}
	})
}

// TestSignalEndsTheOutage with the signal's exit code.
func TestSignalEndsTheOutage(t *testing.T) {
	t.Setenv("ZKRECIPES_CONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ZKRECIPES_SERVERS", "zk")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		tl := newTool(&strings.Builder{}, &strings.Builder{})
		tl.launch = func(context.Context, host.Config) (launchedPlugin, error) {
			return &outage{until: time.Now().Add(24 * time.Hour), exited: make(chan struct{})}, nil
		}
		signal := job.Interruption{Signal: os.Interrupt}
		time.AfterFunc(time.Hour, func() { cancel(signal) })
		err := await(ctx, tl, &output{stdout: tl.stdout, stderr: tl.stderr}, patience{failure: "it was not granted"},
			func(context.Context, recipes.Session) (struct{}, error) { return struct{}{}, nil },
			func(struct{}) error { return nil })
		if got := code(err, exitFailed); got != 130 || err.Error() != signal.Error()+": it was not granted" {
			t.Errorf("%d: %v", got, err)
		}
	})
}

// stateSession is a session in this state when the wait ends.
type stateSession struct {
	openSession
	state recipes.State
}

func (s stateSession) State() recipes.State { return s.state }

// TestExitCodeTellsAnOutageFromALockThatOthersHold: when the time is over, only a session
// that is connected knows that others hold the lock. Verbs with a command and those
// without, which give errors codes of their own, agree.
func TestExitCodeTellsAnOutageFromALockThatOthersHold(t *testing.T) {
	t.Setenv("ZKRECIPES_CONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ZKRECIPES_SERVERS", "zk")
	deadline := fmt.Errorf("lock /l: %w", context.DeadlineExceeded)
	for _, tt := range []struct {
		state recipes.State
		err   error
		late  bool // while it is used
		want  int
	}{
		{recipes.Connected, deadline, false, exitTimeout},
		{recipes.Connected, deadline, true, exitTimeout},
		{recipes.Suspended, deadline, false, exitOwn},
		{recipes.Suspended, deadline, true, exitOwn},
		{recipes.Lost, recipes.ErrDeadline, false, exitOwn},
		{recipes.Suspended, fmt.Errorf("%w: %w", recipes.ErrUnavailable, context.DeadlineExceeded), false, exitOwn},
	} {
		for _, p := range []patience{{timeout: time.Minute}, {timeout: time.Minute, failure: "/l was not granted", hint: "look"}} {
			t.Run(fmt.Sprintf("%v %v %v %q", tt.state, tt.err, tt.late, p.failure), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tl := newTool(&strings.Builder{}, &strings.Builder{})
					tl.launch = func(context.Context, host.Config) (launchedPlugin, error) {
						return &opening{stateSession{state: tt.state}}, nil
					}
					err := withCode(await(t.Context(), tl, &output{stdout: tl.stdout, stderr: tl.stderr}, p,
						func(ctx context.Context, _ recipes.Session) (context.Context, error) {
							if tt.late {
								return ctx, nil
							}
							<-ctx.Done()
							return nil, tt.err
						},
						func(ctx context.Context) error { <-ctx.Done(); return tt.err }))
					if got := code(err, exitOwn); got != tt.want || !strings.Contains(err.Error(), p.failure) {
						t.Errorf("%v (%d), want %d", err, got, tt.want)
					}
				})
			})
		}
	}
}

// opening is a plugin that opens this session.
type opening struct{ session recipes.Session }

func (o *opening) Exited() <-chan struct{}     { return nil }
func (o *opening) Close(context.Context) error { return nil }
func (o *opening) Open(context.Context, recipes.SessionConfig) (recipes.Session, error) {
	return o.session, nil
}

// TestRequestWithoutAnswerIsAFailure of a verb that does not wait for others too.
func TestRequestWithoutAnswerIsAFailure(t *testing.T) {
	t.Setenv("ZKRECIPES_CONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ZKRECIPES_SERVERS", "zk")
	for state, want := range map[recipes.State]int{recipes.Connected: exitTimeout, recipes.Suspended: exitFailed} {
		tl := newTool(&strings.Builder{}, &strings.Builder{})
		tl.launch = func(context.Context, host.Config) (launchedPlugin, error) {
			return &opening{stateSession{state: state}}, nil
		}
		err := tl.once(t.Context(), &output{stdout: tl.stdout, stderr: tl.stderr}, func(context.Context, recipes.Session) error {
			return fmt.Errorf("read /q: %w", context.DeadlineExceeded)
		})
		if got := code(err, exitFailed); got != want {
			t.Errorf("%v: %v (%d), want %d", state, err, got, want)
		}
	}
}
