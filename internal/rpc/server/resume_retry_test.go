package server_test

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestWhatWasNotTakenUpCanBeAskedForAgain: by the same id. The plugin does not repeat the
// first error, which may have passed.
func TestWhatWasNotTakenUpCanBeAskedForAgain(t *testing.T) {
	t.Parallel()
	zk, way := zooKeeper(t), new(wireToZooKeeper)
	first := hostOf(t, zk, server.Config{Open: zookeeper.OpenWith(way.dial), Resume: zookeeper.Resume})
	opened := first.open(nil)
	ask := &pb.AcquireRequest{Session: opened.GetSession(), RequestId: "1", Path: "/held"}
	held, err := first.acquire(ask)
	if err != nil {
		t.Fatal(err)
	}
	way.kill()
	second := hostOf(t, zk, server.Config{Open: zookeeper.Open, Resume: zookeeper.Resume})
	second.open(resumeOf(opened))
	ask.Resumed = &pb.Grant{Znode: held.GetZnode(), Token: held.GetToken() + 1}
	for range 2 {
		if _, err := second.acquire(ask); !errors.Is(err, recipes.ErrRemoved) {
			t.Fatalf("another token: %v", err)
		}
	}
	ask.Resumed = held
	if taken, err := second.acquire(ask); err != nil || taken.GetToken() != held.GetToken() {
		t.Errorf("took up %v: %v", taken, err)
	}
	if _, err := second.grants.Abandon(second.ctx, &pb.AbandonRequest{Session: opened.GetSession(), RequestId: "2"}); err != nil {
		t.Fatal(err)
	}
	ask.RequestId = "2"
	for range 2 { // what is not wanted is not tried again
		if _, err := second.acquire(ask); err == nil || errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("an abandoned call: %v", err)
		}
	}
}
