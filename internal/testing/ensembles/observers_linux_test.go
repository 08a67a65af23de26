package ensembles_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/fourletter"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
)

// The leader pings observers as it pings followers.
func TestEnsembleWithAnObserver(t *testing.T) {
	testall.Require(t)
	cfg := config(3)
	cfg.Observers = 1
	_, followers, observers := start(t, cfg)
	p := contend(t, observers[0], followers[0], timeout)
	p.moves(t, followers[1])
	p.moves(t, observers[0])
	p.loses(t, func() { must.Do(t, observers[0].Kill()) })
}

// An observer that follows a follower reports its sessions to it, and the follower to the
// leader. If the follower hangs, the leader receives no more reports about the observer's
// sessions, although the observer still serves them.
func TestEnsembleWithAnObserverBehindAFollower(t *testing.T) {
	testall.Require(t)
	notBefore35(t)
	cfg := config(3)
	cfg.Observers = 1
	cfg.Properties = map[string]string{"observerMasterPort": "2191"} // all servers use that port
	e := ensembletest.Start(t, apart(cfg))
	observer, leader := e.Server(cfg.Servers), must.Get(e.Leader(t.Context()))(t)
	figures := fourletter.Pairs(must.Get(observer.Word(t.Context(), "mntr"))(t), "\t")
	id := must.Get(strconv.Atoi(figures["zk_observer_master_id"]))(t)
	master := e.Server(id - 1)
	if master == leader {
		t.Fatal("the observer follows the leader")
	}
	p := contend(t, observer, leader, timeout)
	p.loses(t, func() { must.Do(t, master.Freeze()) })
}

// apart gives each server an IP address of its own, on loopback.
func apart(cfg ensemble.Config) ensemble.Config {
	for i := range cfg.Servers + cfg.Observers {
		cfg.Hosts = append(cfg.Hosts, ensemble.Host{IP: fmt.Sprint("127.0.31.", i+1), Do: func(f func() error) error { return f() }})
	}
	return cfg
}
