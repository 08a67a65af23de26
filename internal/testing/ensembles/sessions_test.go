package ensembles_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// PITFALLS 61 on real servers: the holder's follower dies just after it has answered.
func TestEnsembleWhoseFollowerDies(t *testing.T) {
	leader, followers, _ := start(t, config(3))
	p := contend(t, followers[0], leader, timeout)
	p.loses(t, func() { must.Do(t, followers[0].Kill()) })
}

// A session that moves to another server may be granted another timeout. The ensemble stores
// the first timeout, and a new leader expires the session by it. PITFALLS 62 on real servers: the
// present leader counts with a smaller timeout.
func TestEnsembleWithDifferentLimitsOfTheTimeout(t *testing.T) {
	testall.Require(t)
	cfg := config(3)
	const usual, brief, lengthy = 1, 2, 3 // ids
	cfg.ServerProperties = func(id int) map[string]string {
		return map[string]string{
			"minSessionTimeout": map[int]string{usual: "4000", brief: "4000", lengthy: "16000"}[id],
			"maxSessionTimeout": map[int]string{usual: "60000", brief: "8000", lengthy: "60000"}[id],
		}
	}
	e := ensembletest.Start(t, cfg)
	for _, test := range []struct {
		name          string
		first, second int
		timeout       time.Duration
		election      bool
	}{
		{"the second server grants more", usual, lengthy, timeout, true},
		{"the first server grants more", lengthy, usual, timeout, true},
		{"the second server grants less", usual, brief, long, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			leader, waiterAt := must.Get(e.Leader(t.Context()))(t), e.Server(usual-1)
			if waiterAt == leader {
				waiterAt = e.Server(lengthy - 1)
			}
			p := contend(t, e.Server(test.first-1), waiterAt, test.timeout)
			p.moves(t, e.Server(test.second-1))
			if !test.election {
				p.loses(t, p.cut)
				return
			}
			p.loses(t, func() {
				p.cut()
				must.Do(t, leader.Kill())
			})
			must.Do(t, leader.Restart(t.Context()))
		})
	}
}

// The leader knows a local session only from its first ephemeral znode on.
func TestEnsembleWithLocalSessions(t *testing.T) {
	testall.Require(t)
	notBefore35(t)
	cfg := config(3)
	cfg.Observers = 1
	cfg.Properties = map[string]string{"localSessionsEnabled": "true", "localSessionsUpgradingEnabled": "true"}
	leader, followers, observers := start(t, cfg)
	for name, at := range map[string]*ensemble.Server{"leader": leader, "follower": followers[0], "observer": observers[0]} {
		t.Run("a hold at the "+name, func(t *testing.T) {
			p := contend(t, at, followers[1], timeout)
			p.loses(t, p.cut)
		})
		t.Run("a hold that moves from the "+name, func(t *testing.T) {
			p := contend(t, at, followers[1], timeout)
			p.moves(t, followers[1])
			p.loses(t, p.cut)
		})
		t.Run("a session that holds nothing moves from the "+name, func(t *testing.T) {
			g := gateTo(at)
			s := open(t, g, timeout)
			g.move(followers[1].Addr())
			select {
			case <-s.Done():
			case <-zktest.Bounded(t).Done():
				t.Fatal("a local session has moved")
			}
			if err := s.Err(); !errors.Is(err, recipes.ErrExpired) {
				t.Errorf("lost with %v", err)
			}
		})
	}
	t.Run("the follower dies", func(t *testing.T) {
		p := contend(t, followers[0], followers[1], timeout)
		p.loses(t, func() { must.Do(t, followers[0].Kill()) })
	})
}

// A server that does not upgrade local sessions creates no ephemeral znodes.
func TestEnsembleWithLocalSessionsOnly(t *testing.T) {
	testall.Require(t)
	notBefore35(t)
	cfg := config(3)
	cfg.Properties = map[string]string{"localSessionsEnabled": "true"}
	_, followers, _ := start(t, cfg)
	s := open(t, gateTo(followers[0]), timeout)
	_, err := must.Get(s.Lock("/deadline", recipes.LockConfig{}))(t).Acquire(t.Context())
	if err == nil || !strings.Contains(err.Error(), "localSessionsUpgradingEnabled") {
		t.Errorf("got %v", err)
	}
}

// A server that has lost its quorum serves clients that accept a read-only server. It must not
// serve a holder.
func TestEnsembleInReadOnlyMode(t *testing.T) {
	testall.Require(t)
	cfg := config(3)
	cfg.SystemProperties = map[string]string{"readonlymode.enabled": "true"}
	leader, followers, _ := start(t, cfg)
	p := &pair{gate: gateTo(followers[0])}
	p.holder = open(t, p.gate, timeout)
	p.hold = zktest.Acquire(t, p.holder)
	must.Do(t, leader.Kill())
	must.Do(t, followers[1].Kill())
	for ctx := zktest.Bounded(t); ; {
		if answer, err := followers[0].Word(ctx, "isro"); err == nil && answer == "ro" {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond): // the server is another process, so the test polls it
		case <-ctx.Done():
			t.Fatal("the server is not read-only")
		}
	}
	p.lost(t, zktest.Bounded(t)) // while it tries to connect to the read-only server
	if err := p.hold.Err(); !errors.Is(err, recipes.ErrDeadline) {
		t.Errorf("lost with %v", err)
	}
}
