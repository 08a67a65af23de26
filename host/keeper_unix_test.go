//go:build unix

package host_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// onKeeper runs test against a server that plays each version of ClickHouse Keeper, with a session
// through the plugin's process.
func onKeeper(t *testing.T, test func(t *testing.T, v *surviving)) {
	for _, like := range zkserver.Keepers() {
		t.Run(like.String(), func(t *testing.T) {
			t.Parallel()
			server := must.Get(zkserver.Listen(zkserver.Config{Like: like}))(t)
			t.Cleanup(func() { server.Close() })
			v := surviveWith(t, []string{server.Addr()}, nil)
			v.server = server
			test(t, v)
		})
	}
}

// The host knows what the servers are, and can refuse them.
func TestThePluginRecognizesKeeper(t *testing.T) {
	onKeeper(t, func(t *testing.T, v *surviving) {
		if got := must.Get(v.session.Stats(ctx(t)))(t).Server; got != recipes.ServerKeeper {
			t.Errorf("recognized as %q", got)
		}
		before := len(v.server.Sessions())
		_, err := v.supervisor.Open(ctx(t), recipes.SessionConfig{Servers: v.servers, ZooKeeperOnly: true})
		if !errors.Is(err, recipes.ErrUnsupported) || !strings.Contains(err.Error(), "ClickHouse Keeper") {
			t.Errorf("with ZooKeeperOnly: %v", err)
		}
		eventually(t, func() string {
			n := len(v.server.Sessions())
			return unless(n == before, "%d sessions, %d before", n, before)
		})
	})
	zk := survive(t)
	s := must.Get(zk.supervisor.Open(ctx(t), recipes.SessionConfig{Servers: zk.servers, ZooKeeperOnly: true}))(t)
	if got := must.Get(s.Stats(ctx(t)))(t).Server; got != recipes.ServerZooKeeper {
		t.Errorf("ZooKeeper is recognized as %q", got)
	}
	must.Do(t, s.Close(ctx(t)))
}

// An upgrade that would lose Keeper's sessions says why, and changes nothing. Nothing is sent for it:
// the session continues. It is lost with its plugin.
func TestKeepersSessionsAreNotMoved(t *testing.T) {
	onKeeper(t, func(t *testing.T, v *surviving) {
		hold, old := v.holds("/l"), v.supervisor.Plugin()
		err := v.supervisor.Upgrade(ctx(t), v.another())
		if !errors.Is(err, recipes.ErrUnsupported) || !errors.Is(err, host.ErrLosesSessions) || !errors.Is(err, host.ErrNotUpgraded) ||
			!strings.Contains(err.Error(), "ClickHouse Keeper") {
			t.Errorf("upgraded: %v", err)
		}
		if v.supervisor.Plugin() != old || hold.Err() != nil || v.session.State() != recipes.Connected {
			t.Errorf("the session is %v, the hold %v", v.session.State(), hold.Err())
		}
		must.Do(t, syscall.Kill(old.PID(), syscall.SIGKILL))
		closes(t, "the session", v.session.Done())
		if err := v.session.Err(); !errors.Is(err, recipes.ErrPluginLost) {
			t.Errorf("lost with %v", err)
		}
	})
}

// The session is lost with its connection, with the same reason as without a plugin.
func TestThePluginReportsThatKeeperDoesNotContinue(t *testing.T) {
	onKeeper(t, func(t *testing.T, v *surviving) {
		hold := v.holds("/l")
		v.server.CloseConnection(v.session.ID())
		closes(t, "the hold", hold.Done())
		closes(t, "the session", v.session.Done())
		for what, err := range map[string]error{"session": v.session.Err(), "hold": hold.Err()} {
			if !errors.Is(err, recipes.ErrNotContinued) || errors.Is(err, recipes.ErrExpired) || errors.Is(err, recipes.ErrPluginLost) {
				t.Errorf("the %s: %v", what, err)
			}
		}
	})
}

// A lock passes from one session to the next, direct and through the plugin, with what Keeper knows.
func TestALockPassesOnKeeper(t *testing.T) {
	onKeeper(t, func(t *testing.T, v *surviving) {
		first := v.holds("/l")
		must.Do(t, first.Write(ctx(t), recipes.Create("/written", nil)))
		granted := make(chan recipes.Hold, 1)
		joined := make(chan struct{})
		go func() {
			l := must.Get(v.rival.Lock("/l", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))(t)
			granted <- must.Get(l.Acquire(ctx(t)))(t)
		}()
		closes(t, "the wait for the rival", joined)
		must.Do(t, first.Release(ctx(t)))
		second := <-granted
		if second.Token() <= first.Token() {
			t.Errorf("the tokens are %d and %d", first.Token(), second.Token())
		}
		must.Do(t, second.Release(ctx(t)))
		for _, s := range []recipes.Client{v.session, v.rival} {
			if n := must.Get(s.Stats(ctx(t)))(t).Reconnects; n > 0 || s.Err() != nil {
				t.Errorf("%d reconnects, %v", n, s.Err())
			}
			must.Do(t, s.Close(ctx(t)))
		}
	})
}
