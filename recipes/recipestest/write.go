package recipestest

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// writeTests tests the guarded writes of holds and leaderships.
func writeTests() []kindTest {
	tests := append(writeLossTests(), []kindTest{
		{"create, set and delete happen in one transaction", func(f *fixture, k kind) {
			g := k.granted(f, f.open(), f.path("a"))
			f.create(f.path("set"), "old")
			f.create(f.path("deleted"), "")
			f.must(g.Write(f.ctx,
				recipes.Create(f.path("created"), []byte("new")),
				recipes.Create(f.path("created", "below"), nil),
				recipes.Set(f.path("set"), []byte("new"), recipes.AnyVersion),
				recipes.Delete(f.path("deleted"), 0),
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
			f.failIf(f.exists(f.path("deleted")), "deleted exists")
			f.held(g)
		}},
		{"created znodes have the session's ACL", func(f *fixture, k kind) {
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
				f.failIf(len(acl) != 2 || acl[0] != want[0] || acl[1] != want[1], "%s has ACL %v; want %v", path, acl, want)
			}
		}},
		{"paths are below the chroot", func(f *fixture, k kind) {
			s := f.open(func(c *recipes.SessionConfig) { c.Chroot = f.root })
			g := k.granted(f, s, "/a")
			f.must(g.Write(f.ctx, recipes.Create("/x", []byte("below"))))
			data, _ := f.read(f.path("x"))
			f.failIf(data != "below", "data %q", data)
			err := g.Write(f.ctx, recipes.Create("/x", nil))
			f.refused(err, 0, recipes.ErrNodeExists)
			var refusal *recipes.WriteError
			f.failIf(errors.As(err, &refusal) && refusal.Op.Path != "/x", "the error names %s; want /x", refusal.Op.Path)
		}},
		{"the concurrent writes of one grant are all committed", func(f *fixture, k kind) {
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
			_, stat := f.read(f.path("x"))
			f.failIf(stat.Version != n, "version %d; want %d", stat.Version, n)
		}},
		{"a write with a bad operation is ErrInvalid, and nothing is sent", func(f *fixture, k kind) {
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
					err := g.Write(f.ctx, good, op)
					f.failIf(!errors.Is(err, recipes.ErrInvalid), "%s: error %v; want ErrInvalid", name, err)
				})
			}
			f.failIf(f.exists(f.path("x")), "the valid operation was committed")
			f.held(g)
		}},
		{"a write that does not fit into a packet is ErrTooLarge, and is not sent", func(f *fixture, k kind) {
			s := f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 8 << 10 })
			g := k.granted(f, s, f.path("a"))
			f.writesNothing(s, func() {
				f.is(g.Write(f.ctx, recipes.Create(f.path("x"), make([]byte, 9<<10))), recipes.ErrTooLarge)
			})
			f.held(g)
			f.must(g.Write(f.ctx, recipes.Create(f.path("x"), nil)))
		}},
	}...)
	for _, r := range refusals {
		tests = append(tests, kindTest{"a refused operation is a WriteError, and nothing is committed/" + r.name, func(f *fixture, k kind) { writeRefused(f, k, r) }})
	}
	return tests
}

// refused checks that err is a *WriteError of the operation with this index.
func (f *fixture) refused(err error, index int, sentinel error) {
	f.Helper()
	var refusal *recipes.WriteError
	if !errors.As(err, &refusal) {
		f.Fatalf("error %v; want a *recipes.WriteError", err)
	}
	f.failIf(refusal.Index != index, "index %d in %v; want %d", refusal.Index, err, index)
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
	f.failIf(f.exists(f.path("y")) || f.exists(f.path("z")), "some operations were committed")
	f.held(g)
	f.must(g.Write(f.ctx))
}

// forbidden checks that the grant can no longer write, and that the error matches the reasons.
func (f *fixture) forbidden(g recipes.Grant, reasons ...error) {
	f.Helper()
	err := g.Write(f.ctx, recipes.Create(f.path("forbidden"), nil))
	f.is(err, append(reasons, recipes.ErrNotHeld)...)
	f.isNot(err, recipes.ErrUnknownOutcome)
	f.is(g.Write(f.ctx), append(reasons, recipes.ErrNotHeld)...)
	var refusal *recipes.WriteError
	f.failIf(errors.As(err, &refusal), "error %v is a *recipes.WriteError", err)
	f.failIf(f.exists(f.path("forbidden")), "the write was committed")
}

func writeLossTests() []kindTest {
	return []kindTest{
		{"a holder that was replaced cannot write, its successor can", func(f *fixture, k kind) {
			old := k.granted(f, f.open(), f.path("a"))
			f.remove(old.Znode())
			// The former holder has not noticed the deletion.
			g := k.granted(f, f.open(), f.path("a"))
			f.must(old.Err())
			f.must(g.Write(f.ctx, recipes.Create(f.path("x"), []byte("successor"))))
			f.is(old.Write(f.ctx, recipes.Set(f.path("x"), []byte("deposed"), recipes.AnyVersion)), recipes.ErrNotHeld)
			data, _ := f.read(f.path("x"))
			f.failIf(data != "successor", "the data is that of the %s holder", data)
			f.held(g)
		}},
		{"a write whose reply is lost is ErrUnknownOutcome, and is not repeated", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.create(f.path("x"), "")
			f.must(g.Write(f.ctx)) // the first write of a grant also creates its guard
			f.relay(s).HoldReplies()
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
			f.lose(s)
			err = call.failure(f)
			f.is(err, recipes.ErrUnknownOutcome)
			f.isNot(err, recipes.ErrNotHeld)
			f.must(g.Write(f.ctx)) // the grant is still held on the next connection
			_, stat := f.read(f.path("x"))
			f.failIf(stat.Version != 1, "written %d times; want once", stat.Version)
		}},
		{"a write whose request is lost is ErrUnknownOutcome, and is not repeated", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.create(f.path("x"), "")
			f.must(g.Write(f.ctx)) // the first write of a grant also creates its guard
			before := f.stats(s).Writes
			f.relay(s).Hold()
			call := startErr(f, func() error {
				return g.Write(f.ctx, recipes.Set(f.path("x"), []byte("1"), recipes.AnyVersion))
			})
			f.reach(s, func(c recipes.Stats) bool { return c.Writes == before+1 })
			f.lose(s)
			f.is(call.failure(f), recipes.ErrUnknownOutcome)
			f.must(g.Write(f.ctx))
			_, stat := f.read(f.path("x"))
			f.failIf(stat.Version != 0, "written %d times; want not at all", stat.Version)
		}},
		{"a write waits for the connection", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.sever(s)
			write := func(ctx context.Context) error { return g.Write(ctx, recipes.Create(f.path("x"), nil)) }
			f.isNot(f.unreached(write), recipes.ErrNotHeld)
			call := startErr(f, func() error { return write(f.ctx) })
			f.restore(s)
			call.must(f)
			f.failIf(!f.exists(f.path("x")), "x does not exist")
		}},
	}
}
