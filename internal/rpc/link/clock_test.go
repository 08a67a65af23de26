package link

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// echo is the content of a heartbeat's echo.
type echo struct {
	number              uint64
	age, known, timeout time.Duration
}

func (e echo) message() *pb.BeatEcho {
	return &pb.BeatEcho{
		Number: e.number, ContactAge: durationpb.New(e.age), KnownContactAge: durationpb.New(e.known), Timeout: durationpb.New(e.timeout),
	}
}

// The test varies the delays of a heartbeat and its echo. ZooKeeper counts from the plugin's
// last contact, which had the given age when the echo was written.
func TestDeadlineIsNeverLaterThanZooKeepers(t *testing.T) {
	const timeout = 10 * time.Second
	for _, test := range []struct {
		name     string
		to, back time.Duration // delays of a heartbeat and of its echo
		age      time.Duration
	}{
		{"at once", 0, 0, 0},
		{"old contact", 0, 0, 3 * time.Second},
		{"late beat", 4 * time.Second, 0, time.Second},
		{"late echo", 0, 4 * time.Second, time.Second},
		{"later than the session lasts", 6 * time.Second, 6 * time.Second, 0},
		{"contact in the future", time.Second, time.Second, -5 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClock(timeout)
				n := c.heartbeat()
				time.Sleep(test.to)
				contact := time.Now().Add(-max(test.age, 0))
				time.Sleep(test.back)
				c.echo(echo{number: n, age: test.age, known: test.age}.message())
				if mine, zookeepers := c.remaining(), time.Until(contact.Add(timeout)); mine > zookeepers {
					t.Errorf("%v left here, %v at ZooKeeper", mine, zookeepers)
				}
			})
		})
	}
}

func TestEchoNeverShortensTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(time.Second)
		first, second := c.heartbeat(), c.heartbeat()
		c.echo(echo{number: second}.message())
		left := c.remaining()
		c.echo(echo{number: second}.message())                                      // twice
		c.echo(echo{number: first, age: time.Second, known: time.Second}.message()) // after the later one
		c.echo(echo{number: 99, age: -time.Hour, known: -time.Hour}.message())      // never sent
		if c.remaining() != left {
			t.Errorf("%v became %v", left, c.remaining())
		}
		third := c.heartbeat()
		c.echo(echo{number: third, age: 900 * time.Millisecond, known: 900 * time.Millisecond}.message())
		if c.remaining() != left {
			t.Errorf("an old contact has left %v; want %v", c.remaining(), left)
		}
	})
}

// Echoes arrive in order. An echo answers the earlier heartbeats too, and none of these is kept.
func TestAnEchoedHeartbeatIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(time.Second)
		first, second, third := c.heartbeat(), c.heartbeat(), c.heartbeat()
		c.echo(echo{number: second}.message())
		if len(c.sent) != 1 {
			t.Errorf("%d heartbeats are kept; one has no echo", len(c.sent))
		}
		c.echo(echo{number: first, timeout: time.Hour}.message())
		if c.sessionTimeout() != time.Second {
			t.Error("an echo that arrived too late counts")
		}
		c.echo(echo{number: third}.message())
		if len(c.sent) != 0 {
			t.Errorf("%d heartbeats are kept", len(c.sent))
		}
	})
}

// While the host holds something, contacts that the leader may not have received do not
// count, not even those from before the hold.
func TestAHostThatHoldsCountsFromWhatTheLeaderKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		c := newClock(timeout)
		c.echo(echo{number: c.heartbeat(), age: time.Second, known: 5 * time.Second}.message())
		free, look := c.remaining(), c.nextCheck()
		c.hold(true)
		held := c.remaining()
		if held != free-4*time.Second {
			t.Errorf("%v left with a hold, %v without", held, free)
		}
		if look != held {
			t.Errorf("checked again after %v; a hold ends after %v", look, held)
		}
		c.hold(false)
		if c.remaining() != free {
			t.Errorf("%v left after the hold, %v before", c.remaining(), free)
		}
		time.Sleep(held)
		if look := c.nextCheck(); look != 4*time.Second {
			t.Errorf("checked again after %v", look)
		}
		c.hold(true)
		if c.remaining() > 0 {
			t.Errorf("%v left", c.remaining())
		}
	})
}

// A grant wakes no goroutine, unless the session's deadline is near.
func TestFirstGrantSendsAHeartbeatOnlyIfTheDeadlineIsNear(t *testing.T) {
	for _, test := range []struct {
		known time.Duration
		asked bool
	}{{0, false}, {7 * time.Second, false}, {7100 * time.Millisecond, true}, {11 * time.Second, true}} {
		synctest.Test(t, func(t *testing.T) {
			c := newClock(10 * time.Second)
			c.echo(echo{number: c.heartbeat(), known: test.known}.message())
			for range 2 {
				c.hold(true)
				if asked := len(c.changed) > 0; asked != test.asked {
					t.Errorf("known for %v: the plugin was asked: %v", test.known, asked)
				}
				c.hold(false)
			}
		})
	}
}

// Nothing was held and the leader received nothing, so the timer waits for the last contact's
// deadline. A grant counts from the last contact that the leader received, whose deadline is
// earlier.
func TestFirstGrantMovesALateTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(10 * time.Second)
		c.echo(echo{number: c.heartbeat(), known: 20 * time.Second}.message())
		c.nextCheck()
		c.echo(echo{number: c.heartbeat(), known: 4 * time.Second}.message())
		c.hold(true)
		if len(c.changed) == 0 {
			t.Errorf("the deadline is in %v, and is not checked before", c.remaining())
		}
	})
}

// The error names the side that was silent, and the time that has passed, not the session
// timeout.
func TestTheSilentSideIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(10 * time.Second)
		c.echo(echo{number: c.heartbeat()}.message())
		for age := 2 * time.Second; age < 10*time.Second; age += 2 * time.Second {
			time.Sleep(2 * time.Second)
			c.echo(echo{number: c.heartbeat(), age: age, known: age}.message())
		}
		time.Sleep(2 * time.Second)
		if s := c.silence(); c.remaining() > 0 || s != "the plugin has received nothing from ZooKeeper for 10s" {
			t.Errorf("%v left: %s", c.remaining(), s)
		}
		c.hold(true)
		c.echo(echo{number: c.heartbeat(), age: 2 * time.Second, known: 9500 * time.Millisecond}.message())
		if s := c.silence(); c.remaining() > 0 || s != "the plugin has received nothing from ZooKeeper for 2s; the leader is not known to have received anything from the session for 9.5s" {
			t.Errorf("%v left: %s", c.remaining(), s)
		}
		c.echo(echo{number: c.heartbeat()}.message())
		time.Sleep(9600 * time.Millisecond)
		if s := c.silence(); c.remaining() > 0 || s != "the plugin has not answered, or this process did not run, for 9.6s" {
			t.Errorf("%v left: %s", c.remaining(), s)
		}
	})
}

// A process that was stopped for longer than the session timeout may call a method before its
// timers run. Every method returns the loss. No goroutine of the session runs here.
func TestEveryMethodReportsTheLossAfterAPause(t *testing.T) {
	for name, lost := range map[string]func(*Session) bool{
		"Done": func(s *Session) bool {
			select {
			case <-s.Done():
				return true
			default:
				return false
			}
		},
		"State": func(s *Session) bool { return s.State() == recipes.Lost },
		"Err":   func(s *Session) bool { return errors.Is(s.Err(), recipes.ErrDeadline) },
		"Acquire, when its answer arrives": func(s *Session) bool {
			_, err := s.holdGrants(&pendingCall{at: s.owner}, &Grant{id: "1"})
			s.removeGrant("1")
			return errors.Is(err, recipes.ErrDeadline)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(new(Client), recipes.SessionConfig{}, &generation{plugin: new(Plugin), cancelStream: func() {}}, &pb.Opened{Timeout: durationpb.New(10 * time.Second)})
				s.clock.echo(echo{number: s.clock.heartbeat()}.message())
				if lost(s) {
					t.Fatal("lost at once")
				}
				time.Sleep(9500 * time.Millisecond)
				if !lost(s) {
					t.Error("no loss was reported")
				}
			})
		})
	}
}

// If this process did not run, the plugin has received no heartbeat and gives the session up.
// The reason is the deadline, whether the plugin's message or the timer is handled first.
func TestTheDeadlineIsTheReasonOfAPausedHost(t *testing.T) {
	for pause, want := range map[time.Duration]error{59 * time.Minute: recipes.ErrDeadline, time.Minute: recipes.ErrPluginLost} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := resumable(t)
			s.clock.echo(echo{number: s.clock.heartbeat()}.message())
			g := s.latest()
			g.stream = scriptedStream{pause: pause, last: &pb.OpenResponse{Message: &pb.OpenResponse_StateChanged{StateChanged: &pb.StateChanged{
				State: pb.State_STATE_LOST, Reason: wire.ToFailure(recipes.ErrPluginLost),
			}}}}
			s.readStreams(g)
			s.mu.Lock()
			defer s.mu.Unlock()
			if !errors.Is(s.err, want) {
				t.Errorf("lost after %v: %v", pause, s.err)
			}
		})
	}
}

// In a session that has held nothing for a long time, the last echo proves nothing for a new
// grant. The host asks the plugin once, and counts from the new proof. A session that holds
// something sends no heartbeat for a grant.
func TestAGrantCountsFromAnEchoThatIsYoungerThanItsProof(t *testing.T) {
	for _, test := range []struct {
		known time.Duration // in the last echo before the grant
		asks  bool
	}{{time.Second, false}, {8400 * time.Millisecond, false}, {8600 * time.Millisecond, true}, {time.Hour, true}} {
		synctest.Test(t, func(t *testing.T) {
			c := newClock(10 * time.Second)
			c.echo(echo{number: c.heartbeat(), known: test.known}.message())
			if c.proved() == test.asks {
				t.Errorf("known for %v: proved: %v", test.known, c.proved())
			}
			start := time.Now()
			if next := c.since(start); next != nil {
				t.Error("an echo of a heartbeat that was sent at that time does not count")
			}
			time.Sleep(time.Millisecond)
			start = time.Now()
			next := c.since(start)
			n := c.heartbeat()
			time.Sleep(time.Millisecond)
			c.echo(echo{number: n, known: 7 * time.Second}.message())
			select {
			case <-next:
			default:
				t.Error("the echo does not wake the waiter")
			}
			if c.since(start) != nil || !c.proved() {
				t.Error("the echo proves nothing")
			}
		})
	}
}

// The end of a plugin's process waits for each session that is being opened or still reads.
func TestTheEndOfAProcessWaitsForItsSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s, returned := New(nil).Connect(nil, nil, nil), new(Session), false
		waits := func() {
			t.Helper()
			if synctest.Wait(); returned || p.empty.Err() != nil || p.failure() != nil {
				t.Errorf("returned: %v; empty: %v; %v", returned, p.empty.Err(), p.failure())
			}
		}
		p.addSession(s)
		p.removeSession(s) // the process runs
		for range 2 {
			p.beginOpen(t.Context())
		}
		go func() { p.ProcessEnded(t.Context()); returned = true }()
		waits()
		p.addSession(s)
		p.endOpen()
		waits()
		p.removeSession(s)
		waits()
		p.endOpen() // the attempt to open it has failed
		if synctest.Wait(); !returned || p.failure() == nil {
			t.Errorf("returned: %v; %v", returned, p.failure())
		}
	})
}
