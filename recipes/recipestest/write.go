package recipestest

import (
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// writeTests tests the guarded writes of holds and leaderships.
func writeTests() []kindTest {
	tests := []kindTest{
		{"create, set and delete happen in one transaction", writeAll},
		{"created znodes have the session's ACL", writeACL},
		{"paths are below the chroot", writeChroot},
		{"the concurrent writes of one grant are all committed", writeTogether},
		{"a holder that was replaced cannot write, its successor can", writeDeposed},
		{"a write with a bad operation is ErrInvalid, and nothing is sent", writeInvalid},
		{"a write that does not fit into a packet is ErrTooLarge, and is not sent", writeTooLarge},
		{"a write whose reply is lost is ErrUnknownOutcome, and is not repeated", writeReplyLost},
		{"a write whose request is lost is ErrUnknownOutcome, and is not repeated", writeRequestLost},
		{"a write waits for the connection", writeWaits},
	}
	for _, r := range refusals {
		tests = append(tests, kindTest{"a refused operation is a WriteError, and nothing is committed/" + r.name, func(f *fixture, k kind) { writeRefused(f, k, r) }})
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
	if f.exists(f.path("deleted")) {
		f.Error("deleted exists")
	}
	f.held(g)
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
