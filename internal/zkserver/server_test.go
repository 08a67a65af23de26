package zkserver_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func TestGoZookeeperClient(t *testing.T) {
	s := must.Get(zkserver.Listen(zkserver.Config{}))(t)
	defer s.Close()
	conn, _, err := zk.Connect([]string{s.Addr()}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	path, err := conn.Create("/a", []byte("x"), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil || path != "/a0000000000" {
		t.Fatalf("create: %q, %v", path, err)
	}
	data, stat, watch, err := conn.GetW(path)
	if err != nil || string(data) != "x" || stat.EphemeralOwner != conn.SessionID() {
		t.Fatalf("get: %q %+v %v", data, stat, err)
	}
	results, err := conn.Multi(
		&zk.CheckVersionRequest{Path: path, Version: 0},
		&zk.SetDataRequest{Path: path, Data: []byte("y"), Version: 0},
	)
	if err != nil || results[1].Stat.Version != 1 {
		t.Fatalf("multi: %+v %v", results, err)
	}
	if e := <-watch; e.Type != zk.EventNodeDataChanged || e.Path != path {
		t.Fatalf("event: %+v", e)
	}
	must.Do(t, conn.Delete(path, 1))
	must.Get(conn.Sync("/"))(t)
	if got := s.Counters().Requests[zkserver.OpMulti]; got != 1 {
		t.Errorf("multis counted: %d", got)
	}
}
