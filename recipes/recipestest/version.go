package recipestest

import (
	"errors"

	"github.com/go-zookeeper/zk"
)

// since35 reports whether the servers are ZooKeeper 3.5 or later, which have create2 and
// containers. It asks by a transaction that every server refuses: the creation of an existing
// znode as a container. Earlier servers refuse the flag. ClickHouse Keeper might create the znode,
// and is not asked: the recipes use neither there.
func (f *fixture) since35() bool {
	f.Helper()
	if f.keeper() {
		return false
	}
	_, err := f.outside.Multi(&zk.CreateRequest{Path: "/zookeeper", Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagContainer})
	if !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, zk.ErrBadArguments) {
		f.Fatalf("the creation of /zookeeper: %v; want it refused", err)
	}
	return errors.Is(err, zk.ErrNodeExists)
}

// needsContinuing skips the test on servers that do not continue a session on a new connection.
func (f *fixture) needsContinuing() {
	f.Helper()
	if f.keeper() {
		f.lack("the servers do not continue a session on a new connection")
	}
}

// lack skips the test, because the servers lack what it tests. Run counts these tests.
func (f *fixture) lack(what string) {
	f.Helper()
	if !f.insist {
		f.lacking = true
		f.Skipf("NOT TESTED: %s", what)
	}
}

// needs35 skips the test on servers that lack what it tests.
func (f *fixture) needs35(what string) {
	f.Helper()
	if !f.since35() {
		f.lack("the servers are older than ZooKeeper 3.5, or no ZooKeeper, and have no " + what)
	}
}
