//go:build unix

package host_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// surviving has a session through a supervised plugin process, and a session of this process.
type surviving struct {
	*testing.T
	server     *zkserver.Server // nil: a real server
	servers    []string
	sasl       *recipes.SASL // of both sessions
	supervisor *host.Supervisor
	changes    <-chan host.Change
	session    recipes.Client // through the plugin
	rival      recipes.Client // without a plugin
	hold       *sync.Mutex    // blocks restarts while it is held
}

// embedded starts an in-process server.
func embedded(t *testing.T) *zkserver.Server {
	t.Helper()
	server := must.Get(zkserver.Listen(zkserver.Config{MinSessionTimeout: time.Millisecond, MaxSessionTimeout: time.Hour}))(t)
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func survive(t *testing.T) *surviving {
	t.Helper()
	server := embedded(t)
	v := surviveWith(t, []string{server.Addr()}, nil)
	v.server = server
	return v
}

func surviveWith(t *testing.T, servers []string, sasl *recipes.SASL) *surviving {
	t.Helper()
	changes := make(chan host.Change, 1000)
	v := &surviving{T: t, servers: servers, sasl: sasl, changes: changes, hold: new(sync.Mutex)}
	s := must.Get(host.Supervise(ctx(t), host.SupervisorConfig{
		Plugin:     config(t, "real plugin"),
		MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond,
		Changed: func(c host.Change) {
			v.hold.Lock()
			defer v.hold.Unlock()
			changes <- c
		},
	}))(t)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	v.supervisor = s
	v.session, v.rival = v.open(s.Open), v.open(zookeeper.Open)
	t.Cleanup(func() { _ = v.rival.Close(context.Background()) })
	return v
}

func (v *surviving) open(open recipes.Opener) recipes.Client {
	v.Helper()
	return must.Get(open(ctx(v), recipes.SessionConfig{Servers: v.servers, SASL: v.sasl, SessionTimeout: longTimeout}))(v)
}

// holds acquires the lock at a path in the plugin's session.
func (v *surviving) holds(path string) recipes.Hold {
	v.Helper()
	return must.Get(lockAt(v.T, v.session, path).Acquire(ctx(v)))(v)
}

// holdsShortly opens a session with a short timeout through the plugin. It holds the lock at a
// path, and the rival waits for the lock. lostFirst checks that the hold is lost before the
// rival is granted.
func (v *surviving) holdsShortly(path string) (s recipes.Client, lostFirst func()) {
	v.Helper()
	var h recipes.Hold
	for timeout := shortTimeout; h == nil; timeout *= 2 { // a busy machine needs more
		var err error
		s = must.Get(v.supervisor.Open(ctx(v), recipes.SessionConfig{Servers: v.servers, SessionTimeout: timeout}))(v)
		if h, err = lockAt(v.T, s, path).Acquire(ctx(v)); !errors.Is(err, recipes.ErrSessionLost) || timeout > longTimeout {
			must.Do(v, err)
		}
	}
	lost, granted := make(chan time.Time, 1), make(chan time.Time, 1)
	go func() { <-h.Done(); lost <- time.Now() }()
	go func() {
		_, err := lockAt(v.T, v.rival, path).Acquire(ctx(v))
		must.Report(v, err)
		granted <- time.Now()
	}()
	return s, func() {
		v.Helper()
		if a, b := <-lost, <-granted; !a.Before(b) {
			v.Errorf("lost %v after the rival was granted", a.Sub(b))
		}
	}
}

// kill kills the plugin, and returns when the next one has answered a call of the session. The
// session's events do not show that: a reader can miss so short a suspension, or get one that
// the test has caused.
func (v *surviving) kill() time.Duration {
	v.Helper()
	began := time.Now()
	killed := v.supervisor.Plugin().PID()
	signal(v.T, killed, syscall.SIGKILL)
	for next := false; !next; {
		p := v.supervisor.Plugin()
		next = p != nil && p.PID() != killed
		if _, err := v.session.Contenders(ctx(v), "/"); err != nil {
			v.Fatalf("a call to the next plugin: %v", err)
		}
	}
	return time.Since(began)
}

// ephemerals returns the ephemeral znodes below a path, without receipts, which a session
// keeps until it ends.
func ephemerals(s *zkserver.Server, below string) (paths []string) {
	for _, n := range s.Tree() {
		if n.Stat.EphemeralOwner != 0 && !strings.Contains(n.Path, "/receipts/") && len(n.Path) > len(below) && n.Path[:len(below)+1] == below+"/" {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// nothingLeft checks that no ephemeral znode is left below a path.
func (v *surviving) nothingLeft(below string) {
	v.Helper()
	if left := ephemerals(v.server, below); len(left) > 0 {
		v.Errorf("left: %q", left)
	}
}
