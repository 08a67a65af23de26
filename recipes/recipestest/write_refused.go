package recipestest

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// refused checks that err is a *WriteError of the operation with this index.
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

// refusal is an operation that the server refuses. Its path is below the test's root.
type refusal struct {
	name     string
	op       recipes.Op
	sentinel error
}

var refusals = []refusal{
	{"create of a znode that exists", recipes.Create("/x", nil), recipes.ErrNodeExists},
	{"create without a parent", recipes.Create("/missing/x", nil), recipes.ErrNoNode},
	{"create that the ACL forbids", recipes.Create("/closed/x", nil), recipes.ErrAccessDenied},
	{"set of a znode that does not exist", recipes.Set("/missing", nil, recipes.AnyVersion), recipes.ErrNoNode},
	{"set of another version", recipes.Set("/x", nil, 7), recipes.ErrBadVersion},
	{"set that the ACL forbids", recipes.Set("/closed", nil, recipes.AnyVersion), recipes.ErrAccessDenied},
	{"delete of a znode that does not exist", recipes.Delete("/missing", recipes.AnyVersion), recipes.ErrNoNode},
	{"delete of another version", recipes.Delete("/x/leaf", 7), recipes.ErrBadVersion},
	{"delete of a znode with children", recipes.Delete("/x", recipes.AnyVersion), recipes.ErrNotEmpty},
	{"delete that the ACL forbids", recipes.Delete("/closed/leaf", recipes.AnyVersion), recipes.ErrAccessDenied},
}

func writeRefused(f *fixture, k kind, r refusal) {
	f.create(f.path("x"), "")
	f.create(f.path("x", "leaf"), "")
	f.create(f.path("closed"), "")
	f.create(f.path("closed", "leaf"), "")
	f.acl(f.path("closed"), zk.PermRead)
	g := k.granted(f, f.open(), f.path("a"))
	r.op.Path = f.root + r.op.Path
	f.refused(g.Write(f.ctx, r.op), 0, r.sentinel)
	err := g.Write(f.ctx, recipes.Create(f.path("y"), nil), r.op, recipes.Create(f.path("z"), nil))
	f.refused(err, 1, r.sentinel)
	var refusal *recipes.WriteError
	if errors.As(err, &refusal) && (refusal.Op.Kind() != r.op.Kind() || refusal.Op.Path != r.op.Path || refusal.Op.Version != r.op.Version) {
		f.Errorf("the error names %+v; want %+v", refusal.Op, r.op)
	}
	if f.exists(f.path("y")) || f.exists(f.path("z")) {
		f.Error("some operations were committed")
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
	good := recipes.Create(f.path("x"), nil)
	for name, op := range map[string]recipes.Op{
		"no kind":          {Path: f.path("y")},
		"no path":          recipes.Create("", nil),
		"relative path":    recipes.Create("y", nil),
		"trailing slash":   recipes.Create(f.path("y")+"/", nil),
		"the root":         recipes.Delete("/", recipes.AnyVersion),
		"negative version": recipes.Set(f.path("y"), nil, -2),
	} {
		f.writesNothing(s, func() {
			if err := g.Write(f.ctx, good, op); !errors.Is(err, recipes.ErrInvalid) {
				f.Errorf("%s: error %v; want ErrInvalid", name, err)
			}
		})
	}
	if f.exists(f.path("x")) {
		f.Error("the valid operation was committed")
	}
	f.held(g)
}

func writeTooLarge(f *fixture, k kind) {
	s := f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 8 << 10 })
	g := k.granted(f, s, f.path("a"))
	f.writesNothing(s, func() {
		f.is(g.Write(f.ctx, recipes.Create(f.path("x"), make([]byte, 9<<10))), recipes.ErrTooLarge)
	})
	f.held(g)
	f.must(g.Write(f.ctx, recipes.Create(f.path("x"), nil)))
}
