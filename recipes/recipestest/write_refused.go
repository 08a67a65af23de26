package recipestest

import (
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// refused checks that err is a *WriteError of that operation.
func (f *fixture) refused(err error, index int, sentinel error) {
	f.Helper()
	var refusal *recipes.WriteError
	if !errors.As(err, &refusal) {
		f.Fatalf("error %v; want a *recipes.WriteError", err)
	}
	if refusal.Index != index {
		f.Errorf("index %d in %v; want %d", refusal.Index, err, index)
	}
	f.is(err, sentinel)
	f.is(refusal.Err, sentinel)
	f.isNot(err, recipes.ErrNotHeld, recipes.ErrUnknownOutcome)
}

// refusal is an operation that the server refuses. Its paths are below the test's
// root.
type refusal struct {
	name     string
	op       recipes.Op
	sentinel error
}

var refusals = []refusal{
	{"create of what exists", recipes.Create("/x", nil), recipes.ErrNodeExists},
	{"create without a parent", recipes.Create("/missing/x", nil), recipes.ErrNoNode},
	{"create where the ACL forbids", recipes.Create("/closed/x", nil), recipes.ErrAccessDenied},
	{"set of what does not exist", recipes.Set("/missing", nil, recipes.AnyVersion), recipes.ErrNoNode},
	{"set of another version", recipes.Set("/x", nil, 7), recipes.ErrBadVersion},
	{"set where the ACL forbids", recipes.Set("/closed", nil, recipes.AnyVersion), recipes.ErrAccessDenied},
	{"delete of what does not exist", recipes.Delete("/missing", recipes.AnyVersion), recipes.ErrNoNode},
	{"delete of another version", recipes.Delete("/x/leaf", 7), recipes.ErrBadVersion},
	{"delete of what has children", recipes.Delete("/x", recipes.AnyVersion), recipes.ErrNotEmpty},
	{"delete where the ACL forbids", recipes.Delete("/closed/leaf", recipes.AnyVersion), recipes.ErrAccessDenied},
}

func writeRefused(f *fixture, k kind, r refusal) {
	f.create(f.path("x"), "")
	f.create(f.path("x", "leaf"), "")
	f.create(f.path("closed"), "")
	f.create(f.path("closed", "leaf"), "")
	_, err := f.outside.SetACL(f.path("closed"), zk.WorldACL(zk.PermRead), -1)
	f.must(err)
	g := k.granted(f, f.open(), f.path("a"))
	r.op.Path = f.root + r.op.Path
	f.refused(g.Write(f.ctx, r.op), 0, r.sentinel)
	err = g.Write(f.ctx, recipes.Create(f.path("y"), nil), r.op, recipes.Create(f.path("z"), nil))
	f.refused(err, 1, r.sentinel)
	var refusal *recipes.WriteError
	if errors.As(err, &refusal) && (refusal.Op.Kind != r.op.Kind || refusal.Op.Path != r.op.Path || refusal.Op.Version != r.op.Version) {
		f.Errorf("the error is of %+v; want %+v", refusal.Op, r.op)
	}
	if f.exists(f.path("y")) || f.exists(f.path("z")) {
		f.Error("a part was written")
	}
	f.held(g)
	f.must(g.Write(f.ctx))
}

func writeACL(f *fixture, k kind) {
	s := f.open(func(c *recipes.SessionConfig) {
		c.ACL = []recipes.ACL{
			{Permissions: recipes.PermRead, Scheme: "world", ID: "anyone"},
			{Permissions: recipes.PermAll, Scheme: "ip", ID: "127.0.0.1"},
		}
	})
	g := k.granted(f, s, f.path("a"))
	f.must(g.Write(f.ctx, recipes.Create(f.path("x"), nil)))
	for _, path := range []string{f.root, f.path("a"), g.Znode(), f.path("x")} {
		acl, _, err := f.outside.GetACL(path)
		f.must(err)
		want := []zk.ACL{{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}, {Perms: zk.PermAll, Scheme: "ip", ID: "127.0.0.1"}}
		if len(acl) != 2 || acl[0] != want[0] || acl[1] != want[1] {
			f.Errorf("%s has ACL %v; want %v", path, acl, want)
		}
	}
}

func writeInvalid(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	before := f.stats(s).Writes
	good := recipes.Create(f.path("x"), nil)
	for name, op := range map[string]recipes.Op{
		"no kind":          {Path: f.path("y")},
		"unknown kind":     {Kind: 99, Path: f.path("y")},
		"no path":          recipes.Create("", nil),
		"relative path":    recipes.Create("y", nil),
		"trailing slash":   recipes.Create(f.path("y")+"/", nil),
		"the root":         recipes.Delete("/", recipes.AnyVersion),
		"negative version": recipes.Set(f.path("y"), nil, -2),
	} {
		err := g.Write(f.ctx, good, op)
		if !errors.Is(err, recipes.ErrInvalid) {
			f.Errorf("%s: error %v; want ErrInvalid", name, err)
		}
	}
	if sent := f.stats(s).Writes - before; sent != 0 || f.exists(f.path("x")) {
		f.Errorf("%d writes were sent", sent)
	}
	f.held(g)
}

func writeTooLarge(f *fixture, k kind) {
	s := f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 8 << 10 })
	g := k.granted(f, s, f.path("a"))
	before := f.stats(s).Writes
	err := g.Write(f.ctx, recipes.Create(f.path("x"), []byte(strings.Repeat("x", 9<<10))))
	f.is(err, recipes.ErrTooLarge)
	if sent := f.stats(s).Writes - before; sent != 0 {
		f.Errorf("%d writes were sent", sent)
	}
	f.held(g)
	f.must(g.Write(f.ctx, recipes.Create(f.path("x"), nil)))
}
