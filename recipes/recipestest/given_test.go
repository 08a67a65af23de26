package recipestest_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes/recipestest"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

const givenServers = "ZKRECIPES_TEST_SERVERS"

// TestContractOnGivenServers runs the contract on servers that run already, such as an ensemble that
// is about to get locks. make test-contract runs it. It changes znodes only below a path of its own,
// which it deletes at the end.
func TestContractOnGivenServers(t *testing.T) {
	if os.Getenv(givenServers) == "" {
		t.Skipf("%s names no servers: make test-contract says how", givenServers)
	}
	servers := strings.Split(os.Getenv(givenServers), ",")
	c := plain(t, servers)
	root := "/zkrecipes-contract-" + uuid.NewString()
	must.Get(c.Create(root, nil, 0, zk.WorldACL(zk.PermAll)))(t)
	t.Logf("the tests use %s", root)
	t.Cleanup(func() {
		if err := deleteAll(c, root); err != nil {
			t.Errorf("delete %s yourself: %v", root, err)
		}
	})
	recipestest.Run(t, recipestest.Env{
		Open: zookeeper.Open, Servers: func(testing.TB) []string { return servers }, Root: root,
	})
}

// plain opens a session without the recipes.
func plain(t *testing.T, servers []string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect(servers, 30*time.Second, zk.WithLogInfo(false))
	must.Do(t, err)
	t.Cleanup(c.Close)
	// The znodes of wait queues permit changes to this published identity.
	must.Do(t, c.AddAuth("digest", []byte("zkrecipes:handoff")))
	return c
}

// deleteAll deletes a znode and all below it. Meanwhile the server may delete containers, and the
// znodes of sessions that end. Some tests have taken permissions away.
func deleteAll(c *zk.Conn, path string) error {
	names, _, err := c.Children(path)
	if err == nil && len(names) > 0 || errors.Is(err, zk.ErrNoAuth) {
		if _, err := c.SetACL(path, zk.WorldACL(zk.PermAll), -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return errors.Join(errors.New(path), err)
		}
		names, _, err = c.Children(path)
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return errors.Join(errors.New(path), err)
	}
	for _, name := range names {
		if err := deleteAll(c, path+"/"+name); err != nil {
			return err
		}
	}
	switch err := c.Delete(path, -1); {
	case err == nil, errors.Is(err, zk.ErrNoNode):
		return nil
	case errors.Is(err, zk.ErrNotEmpty) && len(names) > 0: // a call that a test has left behind was still at work
		return deleteAll(c, path)
	default:
		return errors.Join(errors.New(path), err)
	}
}

// runsOn runs the contract of some groups on servers, in another process.
func runsOn(t *testing.T, addrs []string, groups string) {
	t.Helper()
	cmd := exec.CommandContext(watchdog.Bounded(t), os.Args[0], "-test.run=^TestContractOnGivenServers$/^contract$/^("+groups+")$")
	cmd.Env = append(os.Environ(), givenServers+"="+strings.Join(addrs, ","))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// Nothing is left on servers that were in use before, and nothing of others is changed.
func TestTheContractLeavesGivenServersAsTheyWere(t *testing.T) {
	t.Parallel()
	e := ensembletest.Start(t, ensembletest.Quick(1))
	c := plain(t, e.Addrs())
	for _, path := range []string{"/app", "/app/lock"} {
		must.Get(c.Create(path, []byte("theirs"), 0, zk.WorldACL(zk.PermAll)))(t)
	}
	before := state(t, c, "/")
	runsOn(t, e.Addrs(), "session|write|latch|priority_lock")
	if after := state(t, c, "/"); !slices.Equal(before, after) {
		t.Errorf("before: %q\nafter: %q", before, after)
	}
}

// state lists the znodes and their last transactions, without the server's own.
func state(t *testing.T, c *zk.Conn, path string) (list []string) {
	t.Helper()
	names, _, err := c.Children(path)
	must.Do(t, err)
	slices.Sort(names)
	for _, name := range names {
		child := strings.TrimSuffix(path, "/") + "/" + name
		if child == "/zookeeper" {
			continue
		}
		_, stat, err := c.Get(child)
		must.Do(t, err)
		list = append(append(list, child, time.UnixMilli(stat.Mtime).String()), state(t, c, child)...)
	}
	return list
}

// No request names a path of others. The exceptions are reads, and a transaction that each server
// refuses.
func TestTheContractAsksGivenServersOnlyAboutItsOwnPaths(t *testing.T) {
	t.Parallel()
	s := embedded(t)
	var mu sync.Mutex
	others := map[string]bool{}
	s.SetFault(func(r zkserver.Request) zkserver.Fault {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasPrefix(r.Path, "/zkrecipes-contract-") && r.Path != "" {
			others[r.Op.String()+" "+r.Path] = true
		}
		return zkserver.Fault{}
	})
	runsOn(t, []string{s.Addr()}, "session|write|latch|priority_lock|configuration")
	mu.Lock()
	defer mu.Unlock()
	for request := range others {
		if !slices.Contains([]string{"exists /zookeeper", "multi /zookeeper", "exists /", "sync /"}, request) {
			t.Errorf("it sent %s", request)
		}
	}
	if n := len(s.Tree()); n != 4 {
		t.Errorf("it left %d znodes, with the server's own 4", n)
	}
}
