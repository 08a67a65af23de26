package recipestest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// lineTests are what a lock and an election promise in the same words.
func lineTests() []kindTest {
	return slices.Concat([]kindTest{
		{"the first is granted, with its znode as documented", grantedZnode},
		{"the path is the one it was made with", pathIsKept},
		{"missing parents are created as containers", parentsAreContainers},
		{"a path that was removed is created again", pathIsRecreated},
		{"the root of a chroot is a path", rootOfAChroot},
		{"at most one is granted, and tokens grow", exclusion},
		{"grants follow the order of joining", orderOfJoining},
		{"strategies stand in one line", mixedStrategies},
		{"joined tells the place, once and before the return", joinedTellsThePlace},
		{"entering waits for joined to return", joinedIsWaitedFor},
		{"it is not re-entrant", notReentrant},
		{"lines of different paths are independent", independentPaths},
		{"children of other names are ignored", foreignChildren},
		{"contenders are listed in order", contendersInOrder},
		{"an empty line is not an error", emptyLine},
		{"a handoff costs what the strategy says", handoffCost},
		{"data that does not fit in a packet is refused before it is sent", tooLarge},
		{"the server's refusal is ErrAccessDenied", accessDenied},
	}, waitTests(), lossTests(), giveBackTests())
}

var guid = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

func grantedZnode(f *fixture, k kind) {
	s := f.open()
	g, err := k.with(f, s, f.path("a"), options{data: "who I am"}).Enter(f.ctx)
	f.must(err)
	f.held(g)
	name := strings.TrimPrefix(g.Znode(), f.path("a")+"/")
	want, header := `^_c_`+guid+`-`+k.marker+`[0-9]{10}$`, `^`
	if k.hands() {
		want, header = `^`+k.marker+`[0-9]{10}$`, `^_p_`+guid+`-`
	}
	if !regexp.MustCompile(want).MatchString(name) {
		f.Errorf("znode %s; want its name like %s", g.Znode(), want)
	}
	data, stat := f.read(g.Znode())
	if !regexp.MustCompile(header + `who I am$`).MatchString(data) {
		f.Errorf("data %q", data)
	}
	if stat.EphemeralOwner != s.ID() {
		f.Errorf("owner %#x; want the session, %#x", stat.EphemeralOwner, s.ID())
	}
	if g.Token() <= 0 || int64(g.Token()) != stat.Czxid {
		f.Errorf("token %d; want the czxid, %d", g.Token(), stat.Czxid)
	}
	f.must(g.GiveBack(f.ctx))
	if f.exists(g.Znode()) {
		f.Error("the znode is there when it has been given back")
	}
}

func pathIsKept(f *fixture, k kind) {
	if got := k.at(f, f.open(), f.path("a")).Path(); got != f.path("a") {
		f.Errorf("Path = %q", got)
	}
}

// parentsAreContainers needs servers that look for empty containers often.
func parentsAreContainers(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a", "b"))
	f.must(g.Write(f.ctx))
	f.must(g.GiveBack(f.ctx))
	f.awaitNode(f.root, false) // the server removes one after the other
	k.granted(f, s, f.path("a", "b"))
}

func pathIsRecreated(f *fixture, k kind) {
	s := f.open()
	f.must(k.granted(f, s, f.path("a")).GiveBack(f.ctx))
	if err := f.outside.Delete(f.path("a"), -1); err != nil && err != zk.ErrNoNode {
		f.Fatal(err) // a container may have been reaped already
	}
	f.must(k.granted(f, s, f.path("a")).GiveBack(f.ctx))
}

func rootOfAChroot(f *fixture, k kind) {
	s := f.open(func(c *recipes.SessionConfig) { c.Chroot = f.root })
	g := k.granted(f, s, "/")
	if strings.Count(g.Znode(), "/") != 1 {
		f.Errorf("znode %q; want a child of /", g.Znode())
	}
	w := k.waits(f, s, "/")
	f.must(g.GiveBack(f.ctx))
	f.must(w.value1(f).GiveBack(f.ctx))
}

func tooLarge(f *fixture, k kind) {
	s := f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 8 << 10 })
	before := f.stats(s)
	_, err := k.with(f, s, f.path("a"), options{data: strings.Repeat("x", 9<<10)}).Enter(f.ctx)
	f.is(err, recipes.ErrTooLarge)
	if after := f.stats(s); after.Writes != before.Writes {
		f.Errorf("%d writes were sent", after.Writes-before.Writes)
	}
	k.granted(f, s, f.path("a"))
}

func accessDenied(f *fixture, k kind) {
	f.create(f.path("a"), "")
	_, err := f.outside.SetACL(f.path("a"), zk.WorldACL(zk.PermRead), -1)
	f.must(err)
	s := f.open()
	_, err = k.at(f, s, f.path("a")).Enter(f.ctx)
	f.is(err, recipes.ErrAccessDenied)
	_, err = k.at(f, s, f.path("a", "below")).Enter(f.ctx)
	f.is(err, recipes.ErrAccessDenied)
	if names := f.children(f.path("a")); len(names) != 0 {
		f.Errorf("left behind: %v", names)
	}
}
