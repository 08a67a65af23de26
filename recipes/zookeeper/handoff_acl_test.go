package zookeeper_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// turnsOfACLs is how many turns TestALineHasOneACL takes: a few with every run of the
// tests, 10,000 with `make test-acl`.
func turnsOfACLs(t *testing.T) int {
	value := os.Getenv("ZKRECIPES_ACL_TURNS")
	if value == "" {
		return 200
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("ZKRECIPES_ACL_TURNS is a number of turns, not %q", value)
	}
	return n
}

// A server keeps each list of permissions that is in use, and drops it with the last
// znode that has it. So all contenders of all sessions have one list, and so has the path
// at which they stand: the list is in use for as long as there is a line.
func TestALineHasOneACL(t *testing.T) {
	addr, path := ensembletest.Start(t, ensembletest.Quick(1)).Addrs()[0], "/acl/line"
	raw, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	const sessions = 5
	turns := turnsOfACLs(t)
	ofPath := make(map[string]bool)
	lists := make(map[string]string) // and the first znode that has it
	saw := func(znode string) {
		acl, _, err := raw.GetACL(znode)
		if err != nil {
			t.Errorf("getAcl %s: %v", znode, err)
		}
		list := fmt.Sprint(acl)
		if lists[list] == "" {
			lists[list] = znode
		}
		if znode == path {
			ofPath[list] = true
		}
	}
	var all sync.WaitGroup
	for range sessions {
		s := openAt(t, addr)
		all.Go(func() {
			l := must[recipes.Lock](t)(s.Lock(path, recipes.LockConfig{Strategy: recipes.Handoff}))
			for range turns / sessions {
				h, err := l.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				saw(h.Znode()) // by the holder alone
				saw(path)
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	saw("/acl")
	for list, znode := range lists {
		if znode != "/acl" && !ofPath[list] {
			t.Errorf("%s has a list that its path has not: %s", znode, list)
		}
	}
	t.Logf("%d lists in %d turns", len(lists), turns)
	if len(lists) != 2 {
		t.Errorf("%d lists of permissions, want the one of a line and the one of everything else: %v", len(lists), lists)
	}
}
