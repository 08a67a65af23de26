package recipestest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// writeTests are about guarded writes, of holds and leaderships alike.
func writeTests() []kindTest {
	tests := []kindTest{
		{"create, set and delete happen in one transaction", writeAll},
		{"a version that matches is accepted", writeVersion},
		{"no operations check the grant", writeNothing},
		{"a refused operation refuses all", writeIsAtomic},
		{"created znodes have the session's ACL", writeACL},
		{"paths are below the chroot", writeChroot},
		{"writes of many goroutines all happen", writeTogether},
		{"after giving back it is ErrReleased", writeAfterGiveBack},
		{"after a removal it is ErrRemoved", writeAfterRemoval},
		{"after expiry it is ErrNotHeld", writeAfterExpiry},
		{"after the close it is ErrNotHeld", writeAfterClose},
		{"a deposed holder cannot write, its successor can", writeDeposed},
		{"operations that make no sense are not sent", writeInvalid},
		{"more than a packet is not sent", writeTooLarge},
		{"a lost reply is ErrUnknownOutcome, and nothing is sent twice", writeReplyLost},
		{"a lost request is ErrUnknownOutcome, and nothing is sent twice", writeRequestLost},
		{"a write waits for the connection", writeWaits},
	}
	for _, r := range refusals {
		tests = append(tests, kindTest{"refused: " + r.name, func(f *fixture, k kind) { writeRefused(f, k, r) }})
	}
	return tests
}

func writeAll(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.create(f.path("set"), "old")
	f.create(f.path("deleted"), "")
	f.must(g.Write(f.ctx,
		recipes.Create(f.path("created"), []byte("new")),
		recipes.Create(f.path("created", "below"), nil),
		recipes.Set(f.path("set"), []byte("new"), recipes.AnyVersion),
		recipes.Delete(f.path("deleted"), recipes.AnyVersion),
		recipes.Set(f.path("created"), []byte("newer"), 0),
	))
	data, created := f.read(f.path("created"))
	if data != "newer" || created.EphemeralOwner != 0 {
		f.Errorf("created %q with owner %#x; want it persistent", data, created.EphemeralOwner)
	}
	data, set := f.read(f.path("set"))
	if data != "new" || set.Mzxid != created.Czxid || set.Mzxid != created.Mzxid {
		f.Errorf("set to %q in transaction %d; created in %d", data, set.Mzxid, created.Czxid)
	}
	if f.exists(f.path("deleted")) {
		f.Error("deleted is there")
	}
	f.standing(g)
}

func writeVersion(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.create(f.path("x"), "")
	f.must(g.Write(f.ctx, recipes.Set(f.path("x"), []byte("1"), 0)))
	f.must(g.Write(f.ctx, recipes.Set(f.path("x"), []byte("2"), 1)))
	f.must(g.Write(f.ctx, recipes.Delete(f.path("x"), 2)))
	if f.exists(f.path("x")) {
		f.Error("x is there")
	}
}

func writeNothing(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.must(g.Write(f.ctx))
	f.remove(g.Znode())
	f.is(g.Write(f.ctx), recipes.ErrNotHeld)
}

func writeIsAtomic(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.create(f.path("x"), "old")
	err := g.Write(f.ctx,
		recipes.Set(f.path("x"), []byte("new"), recipes.AnyVersion),
		recipes.Create(f.path("y"), nil),
		recipes.Delete(f.path("missing"), recipes.AnyVersion),
		recipes.Create(f.path("z"), nil),
	)
	f.refused(err, 2, recipes.ErrNoNode)
	if data, _ := f.read(f.path("x")); data != "old" || f.exists(f.path("y")) || f.exists(f.path("z")) {
		f.Error("a part was written")
	}
	f.standing(g)
	f.must(g.Write(f.ctx, recipes.Set(f.path("x"), []byte("new"), 0)))
}

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

// refusal is an operation that the server refuses. Its paths are below the
// test's root.
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
	f.standing(g)
	f.must(g.Write(f.ctx))
}

func writeACL(f *fixture, k kind) {
	s := f.open(func(c *recipes.Config) {
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
		if path == g.Znode() && k.hands() {
			// Writing is left to the session's own identity.
			want[1].Perms &^= zk.PermWrite | zk.PermAdmin
			acl = slices.DeleteFunc(acl, func(a zk.ACL) bool { return a.Scheme == "digest" && a.Perms == zk.PermAll })
		}
		if len(acl) != 2 || acl[0] != want[0] || acl[1] != want[1] {
			f.Errorf("%s has ACL %v; want %v", path, acl, want)
		}
	}
}

func writeChroot(f *fixture, k kind) {
	s := f.open(func(c *recipes.Config) { c.Chroot = f.root })
	g := k.granted(f, s, "/a")
	f.must(g.Write(f.ctx, recipes.Create("/x", []byte("below"))))
	if data, _ := f.read(f.path("x")); data != "below" {
		f.Errorf("data %q", data)
	}
	err := g.Write(f.ctx, recipes.Create("/x", nil))
	f.refused(err, 0, recipes.ErrNodeExists)
	var refusal *recipes.WriteError
	if errors.As(err, &refusal) && refusal.Op.Path != "/x" {
		f.Errorf("the error is of %s; want /x", refusal.Op.Path)
	}
}

func writeTogether(f *fixture, k kind) {
	const n = 10
	g := k.granted(f, f.open(), f.path("a"))
	f.create(f.path("x"), "")
	var writers errgroup.Group
	for range n {
		writers.Go(func() error {
			return g.Write(f.ctx, recipes.Set(f.path("x"), nil, recipes.AnyVersion))
		})
	}
	f.must(writers.Wait())
	if _, stat := f.read(f.path("x")); stat.Version != n {
		f.Errorf("version %d; want %d", stat.Version, n)
	}
}

// forbidden checks that the grant writes nothing any more, for those reasons.
func (f *fixture) forbidden(g recipes.Grant, reasons ...error) {
	f.Helper()
	err := g.Write(f.ctx, recipes.Create(f.path("forbidden"), nil))
	f.is(err, append(reasons, recipes.ErrNotHeld)...)
	f.isNot(err, recipes.ErrUnknownOutcome)
	f.is(g.Write(f.ctx), append(reasons, recipes.ErrNotHeld)...)
	var refusal *recipes.WriteError
	if errors.As(err, &refusal) {
		f.Errorf("error %v blames an operation", err)
	}
	if f.exists(f.path("forbidden")) {
		f.Error("it was written")
	}
}

func writeAfterGiveBack(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.must(g.GiveBack(f.ctx))
	f.forbidden(g, recipes.ErrReleased)
}

func writeAfterRemoval(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.remove(g.Znode())
	f.forbidden(g, recipes.ErrRemoved)
}

func writeAfterExpiry(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.expire(s)
	f.forbidden(g, recipes.ErrSessionLost, recipes.ErrExpired)
}

func writeAfterClose(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.must(s.Close(f.ctx))
	f.forbidden(g, recipes.ErrSessionLost, recipes.ErrClosed)
}

func writeDeposed(f *fixture, k kind) {
	old := k.granted(f, f.open(), f.path("a"))
	f.remove(old.Znode())
	// The old one has not looked and believes in itself.
	g := k.granted(f, f.open(), f.path("a"))
	f.must(old.Err())
	f.must(g.Write(f.ctx, recipes.Create(f.path("x"), []byte("successor"))))
	f.is(old.Write(f.ctx, recipes.Set(f.path("x"), []byte("deposed"), recipes.AnyVersion)), recipes.ErrNotHeld)
	if data, _ := f.read(f.path("x")); data != "successor" {
		f.Errorf("data of the %s", data)
	}
	f.standing(g)
}

func writeInvalid(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	before := f.counters(s).Writes
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
	if sent := f.counters(s).Writes - before; sent != 0 || f.exists(f.path("x")) {
		f.Errorf("%d writes were sent", sent)
	}
	f.standing(g)
}

func writeTooLarge(f *fixture, k kind) {
	s := f.open(func(c *recipes.Config) { c.MaxPacket = 8 << 10 })
	g := k.granted(f, s, f.path("a"))
	before := f.counters(s).Writes
	err := g.Write(f.ctx, recipes.Create(f.path("x"), []byte(strings.Repeat("x", 9<<10))))
	f.is(err, recipes.ErrTooLarge)
	if sent := f.counters(s).Writes - before; sent != 0 {
		f.Errorf("%d writes were sent", sent)
	}
	f.standing(g)
	f.must(g.Write(f.ctx, recipes.Create(f.path("x"), nil)))
}

func writeReplyLost(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.create(f.path("x"), "")
	f.must(g.Write(f.ctx)) // what only the first of a grant costs
	f.proxy.holdReplies(s.ID())
	_, _, changed, err := f.outside.GetW(f.path("x"))
	f.must(err)
	call := startErr(f, func() error {
		return g.Write(f.ctx, recipes.Set(f.path("x"), []byte("1"), recipes.AnyVersion))
	})
	select {
	case <-changed:
	case <-f.ctx.Done():
		f.Fatal("nothing was written")
	}
	f.proxy.cut(s.ID())
	f.proxy.restore(s.ID())
	_, err = call.result(f)
	f.is(err, recipes.ErrUnknownOutcome)
	f.isNot(err, recipes.ErrNotHeld)
	f.must(g.Write(f.ctx)) // the grant goes on in the next connection
	if _, stat := f.read(f.path("x")); stat.Version != 1 {
		f.Errorf("written %d times; want once", stat.Version)
	}
}

func writeRequestLost(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.create(f.path("x"), "")
	f.must(g.Write(f.ctx)) // what only the first of a grant costs
	before := f.counters(s).Writes
	f.proxy.freeze(s.ID())
	call := startErr(f, func() error {
		return g.Write(f.ctx, recipes.Set(f.path("x"), []byte("1"), recipes.AnyVersion))
	})
	f.reach(s, func(c recipes.Counters) bool { return c.Writes == before+1 })
	f.proxy.cut(s.ID())
	f.proxy.restore(s.ID())
	_, err := call.result(f)
	f.is(err, recipes.ErrUnknownOutcome)
	f.must(g.Write(f.ctx))
	if _, stat := f.read(f.path("x")); stat.Version != 0 {
		f.Errorf("written %d times; want not at all", stat.Version)
	}
}

func writeWaits(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.sever(s)
	err := g.Write(f.briefly(), recipes.Create(f.path("x"), nil))
	f.is(err, context.DeadlineExceeded)
	f.isNot(err, recipes.ErrNotHeld)
	if !errors.Is(err, recipes.ErrUnavailable) && !errors.Is(err, recipes.ErrUnknownOutcome) {
		f.Errorf("error %v; want that it was not sent, or that nobody knows", err)
	}
	call := startErr(f, func() error { return g.Write(f.ctx, recipes.Create(f.path("x"), nil)) })
	f.proxy.restore(s.ID())
	_, err = call.result(f)
	f.must(err)
	if !f.exists(f.path("x")) {
		f.Error("x is not there")
	}
}
