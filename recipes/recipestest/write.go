package recipestest

import (
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// writeTests are about guarded writes of holds and leaderships.
func writeTests() []kindTest {
	tests := []kindTest{
		{"create, set and delete happen in one transaction", writeAll},
		{"a matching version is accepted", writeVersion},
		{"without operations the grant is checked", writeNothing},
		{"one refused operation refuses all", writeIsAtomic},
		{"created znodes have the session's ACL", writeACL},
		{"paths are below the chroot", writeChroot},
		{"all writes of many goroutines are committed", writeTogether},
		{"after the release it is ErrReleased", writeAfterRelease},
		{"after a deletion it is ErrRemoved", writeAfterRemoval},
		{"after expiry it is ErrNotHeld", writeAfterExpiry},
		{"after the close it is ErrNotHeld", writeAfterClose},
		{"a former holder cannot write, its successor can", writeDeposed},
		{"invalid operations are not sent", writeInvalid},
		{"a request that does not fit into a packet is not sent", writeTooLarge},
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
		f.Error("deleted exists")
	}
	f.held(g)
}

func writeVersion(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.create(f.path("x"), "")
	f.must(g.Write(f.ctx, recipes.Set(f.path("x"), []byte("1"), 0)))
	f.must(g.Write(f.ctx, recipes.Set(f.path("x"), []byte("2"), 1)))
	f.must(g.Write(f.ctx, recipes.Delete(f.path("x"), 2)))
	if f.exists(f.path("x")) {
		f.Error("x exists")
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
		f.Error("some operations were committed")
	}
	f.held(g)
	f.must(g.Write(f.ctx, recipes.Set(f.path("x"), []byte("new"), 0)))
}

func writeChroot(f *fixture, k kind) {
	s := f.open(func(c *recipes.SessionConfig) { c.Chroot = f.root })
	g := k.granted(f, s, "/a")
	f.must(g.Write(f.ctx, recipes.Create("/x", []byte("below"))))
	if data, _ := f.read(f.path("x")); data != "below" {
		f.Errorf("data %q", data)
	}
	err := g.Write(f.ctx, recipes.Create("/x", nil))
	f.refused(err, 0, recipes.ErrNodeExists)
	var refusal *recipes.WriteError
	if errors.As(err, &refusal) && refusal.Op.Path != "/x" {
		f.Errorf("the error names %s; want /x", refusal.Op.Path)
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
