package recipestest

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// children returns the names of a znode's children. A znode that does not exist has none.
func (f *fixture) children(path string) []string {
	f.Helper()
	names, _, err := f.outside.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		f.Fatal(err)
	}
	names = withoutContainers(names)
	slices.Sort(names)
	return names
}

// empty checks that the znodes have no children.
func (f *fixture) empty(paths ...string) {
	f.Helper()
	for _, path := range paths {
		names := f.children(path)
		f.failIf(len(names) != 0, "left behind in %s: %v", path, names)
	}
}

// withoutContainers drops the parents of acknowledgements and guards. They are containers: the
// server deletes them some time after their last child.
func withoutContainers(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "acks" || strings.HasPrefix(name, "guards-") })
}

// awaitChildren waits until a znode has exactly n children.
func (f *fixture) awaitChildren(path string, n int) {
	f.Helper()
	for {
		names, _, changed, err := f.outside.ChildrenW(path)
		if errors.Is(err, zk.ErrNoNode) && n == 0 {
			return
		}
		if errors.Is(err, zk.ErrNoNode) { // a container that the server has deleted is created again
			f.awaitNode(path, true)
			continue
		}
		f.must(err)
		if len(withoutContainers(names)) == n {
			return
		}
		select {
		case <-changed:
		case <-f.ctx.Done():
			f.Fatalf("%s has children %v; want %d", path, names, n)
		}
	}
}

// awaitNode waits until a znode exists, or no longer exists.
func (f *fixture) awaitNode(path string, want bool) {
	f.Helper()
	for {
		exists, _, changed, err := f.outside.ExistsW(path)
		f.must(err)
		if exists == want {
			return
		}
		select {
		case <-changed:
		case <-f.ctx.Done():
			f.Fatalf("%s: exists is %v; want %v", path, exists, want)
		}
	}
}

func (f *fixture) exists(path string) bool {
	f.Helper()
	exists, _, err := f.outside.Exists(path)
	f.must(err)
	return exists
}

// read returns a znode's data and Stat.
func (f *fixture) read(path string) (string, *zk.Stat) {
	f.Helper()
	data, stat, err := f.outside.Get(path)
	if err != nil {
		f.Fatalf("read %s: %v", path, err)
	}
	return string(data), stat
}

// create creates a persistent znode with its parents, unless it exists.
func (f *fixture) create(path, data string) {
	f.Helper()
	err := f.createAll(path, data)
	for errors.Is(err, zk.ErrNoNode) {
		err = f.createAll(path, data) // the server has deleted a parent that was a container
	}
	if err != nil {
		f.Fatalf("create %s: %v", path, err)
	}
}

func (f *fixture) createAll(path, data string) error {
	for at, c := range path {
		if c != '/' || at == 0 {
			continue
		}
		_, err := f.outside.Create(path[:at], nil, 0, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	_, err := f.outside.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll))
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// acl gives every client these permissions on a znode, and no others but that to change them: who
// deletes what the test leaves behind needs it.
func (f *fixture) acl(path string, permissions int32) {
	f.Helper()
	must.Get(f.outside.SetACL(path, zk.WorldACL(permissions|zk.PermAdmin), -1))(f)
}

// remove deletes a znode, as an operator can.
func (f *fixture) remove(path string) {
	f.Helper()
	if err := f.outside.Delete(path, -1); err != nil {
		f.Fatalf("delete %s: %v", path, err)
	}
}
