package recipestest

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// dialectTests tests dialects. The tests create contenders as another library does, and the
// implementation must share their wait queue. An implementation without dialects must return
// ErrUnsupported before it creates anything; the tests then skip.
func dialectTests() []test {
	var tests []test
	for _, s := range spokenLines() {
		for _, t := range []struct {
			name string
			run  func(*fixture, spokenLine)
		}{
			{"a contender waits for the library's contenders ahead of it, and for none behind", func(f *fixture, s spokenLine) {
				path, session := f.path("line"), f.open()
				s.with(f, session, path, options{})
				theirs := s.joins(f, path)
				ours := s.waits(f, session, path)
				znode := ours.place.Znode
				f.failIf(znode[len(znode)-10:] <= theirs[len(theirs)-10:], "%s is ahead of %s", znode, theirs)
				ours.blocked(f)
				later := s.joins(f, path)
				f.remove(theirs)
				g := ours.must(f) // acquired with a contender of the library behind it
				f.held(g)
				f.must(g.Release(f.ctx))
				exists, _, err := f.outside.Exists(later)
				f.failIf(err != nil || !exists, "%s was deleted with the grant before it (%v)", later, err)
			}},
			{"a contender's znode has the name and data of the library's, and is the only one", func(f *fixture, s spokenLine) {
				path := f.path("names")
				g := get(f, s.with(f, f.open(), path, options{Data: []byte("ours")}).Enter)
				if !regexp.MustCompile("^" + regexp.QuoteMeta(path) + s.ours + "$").MatchString(g.Znode()) {
					f.Errorf("the znode is %s; want %s", g.Znode(), s.ours)
				}
				if data, stat := f.read(g.Znode()); data != "ours" || stat.EphemeralOwner == 0 || stat.Czxid != int64(g.Token()) {
					f.Errorf("the znode has %q, %+v", data, stat)
				}
				f.must(g.Write(f.ctx, recipes.Create(f.path("written"), nil)))
				dir := g.Znode()[:strings.LastIndexByte(g.Znode(), '/')]
				if names, _, err := f.outside.Children(dir); err != nil || len(names) != 1 {
					f.Errorf("the children are %q, %v; want only the znode of the grant", names, err)
				}
				f.must(g.Release(f.ctx))
				f.awaitChildren(dir, 0)
			}},
			{"a cancelled waiter leaves nothing", func(f *fixture, s spokenLine) {
				path, session := f.path("gives-up"), f.open()
				s.with(f, session, path, options{})
				theirs := s.joins(f, path)
				ours := s.waits(f, session, path)
				ours.cancel()
				f.is(ours.failure(f), context.Canceled)
				f.awaitChildren(theirs[:strings.LastIndexByte(theirs, '/')], 1)
			}},
			{"a contender that shares no wait queue is ErrForeign", func(f *fixture, s spokenLine) {
				path, session := f.path("foreign"), f.open()
				s.with(f, session, path, options{})
				theirs := f.theirs(path+s.below+"/"+foreignName(s.unknown()), "", zk.FlagEphemeral|zk.FlagSequence)
				_, err := s.with(f, session, path, options{}).Enter(f.ctx)
				f.is(err, recipes.ErrForeign)
				if foreign, ok := errors.AsType[*recipes.ForeignError](err); !ok || foreign.Znode != theirs || foreign.Recipe == "" {
					f.Errorf("%v does not name %s", err, theirs)
				}
				f.awaitChildren(theirs[:strings.LastIndexByte(theirs, '/')], 1)
			}},
			// The other contender does not wait for the holder, so the hold must
			// end. The holder's znode exists until the release.
			{"a contender that shares no wait queue and joins after the grant ends the hold", func(f *fixture, s spokenLine) {
				path := f.path("foreign-later")
				session := f.open(func(cfg *recipes.SessionConfig) { cfg.SessionTimeout = 4 * time.Second }) // the session lists twice in a fifth of the timeout
				g := get(f, s.with(f, session, path, options{}).Enter)
				g.Done() // from now on a loss is reported
				theirs := f.theirs(path+"/"+foreignName(s.unknown()), "", zk.FlagEphemeral|zk.FlagSequence)
				f.lost(g, recipes.ErrForeign)
				f.failIf(!strings.Contains(g.Err().Error(), theirs), "%v does not name %s", g.Err(), theirs)
				f.is(g.Write(f.ctx, recipes.Create(f.path("written"), nil)), recipes.ErrNotHeld)
				f.is(g.Release(f.ctx), recipes.ErrForeign)
				f.awaitNode(g.Znode(), false)
			}},
		} {
			tests = append(tests, test{string(s.dialect) + "/" + s.name + "/" + t.name, func(f *fixture) { t.run(f, s) }})
		}
	}
	return tests
}

// spokenLine is a recipe in a dialect, and the contenders of its library.
type spokenLine struct {
	name    string
	dialect recipes.Dialect
	below   string // path of the wait queue, below the recipe's
	theirs  string // name of the library's contender, between the GUID and the number
	ours    string // pattern of the znode of a grant, below the recipe's path
	recipe  kind
}

func spokenLines() []spokenLine {
	protection := "_c_" + guid + "-"
	const kazoo = `/[0-9a-f_c-]+`
	return []spokenLine{
		{"lock", recipes.Curator, "", "-lock-", `/` + protection + `lock-\d{10}`, lockKind},
		{"lock", recipes.Kazoo, "", "__lock__", kazoo + `__lock__\d{10}`, lockKind},
		{"election", recipes.Curator, "", "-latch-", `/` + protection + `latch-\d{10}`, electionKind},
		{"election", recipes.Kazoo, "", "__lock__", kazoo + `__lock__\d{10}`, electionKind},
		{"reader", recipes.Curator, "", "-__WRIT__", `/` + protection + `__READ__\d{10}`, readersKind},
		{"writer", recipes.Curator, "", "-__READ__", `/` + protection + `__WRIT__\d{10}`, writersKind},
		{"reader", recipes.Kazoo, "", "__lock__", kazoo + `__rlock__\d{10}`, readersKind},
		{"writer", recipes.Kazoo, "", "__rlock__", kazoo + `__lock__\d{10}`, writersKind},
		{"semaphore", recipes.Curator, "/locks", "-lock-", `/leases/` + protection + `lease-\d{10}`, semaphoreKind},
		{"semaphore", recipes.Kazoo, "-__lock__", "__lock__", `/[0-9a-f]{32}`, semaphoreKind},
	}
}

// with opens the recipe. It skips the test if the implementation has no dialects.
func (s spokenLine) with(f *fixture, session recipes.Client, path string, o options) line {
	f.Helper()
	o.Dialect = s.dialect
	l, err := s.recipe.open(session, path, o)
	if err == nil {
		_, err = l.Contenders(f.ctx)
	}
	f.speaks(err, path)
	return l
}

// speaks skips the test if err is ErrUnsupported: the implementation has no dialects. It must
// have created nothing.
func (f *fixture) speaks(err error, path string) {
	f.Helper()
	if !errors.Is(err, recipes.ErrUnsupported) {
		f.must(err)
		return
	}
	f.failIf(f.exists(path), "%s was created before %v", path, err)
	f.Skipf("without dialects: %v", err)
}

// theirs creates a znode as the other library does, with its missing parents.
func (f *fixture) theirs(path, data string, flags int32) string {
	f.Helper()
	f.create(path[:strings.LastIndexByte(path, '/')], "")
	return must.Get(f.outside.Create(path, []byte(data), flags, zk.WorldACL(zk.PermAll)))(f)
}

// joins creates a contender of the library.
func (s spokenLine) joins(f *fixture, path string) string {
	f.Helper()
	return f.theirs(path+s.below+"/"+foreignName(s.theirs), "theirs", zk.FlagEphemeral|zk.FlagSequence)
}

// foreignName returns a name as Curator or kazoo creates it.
func foreignName(end string) string {
	if strings.HasPrefix(end, "-") {
		return "_c_" + uuid.NewString() + end
	}
	return strings.ReplaceAll(uuid.NewString(), "-", "") + end
}

func (s spokenLine) waits(f *fixture, session recipes.Client, path string) *waitingCall[grant] {
	f.Helper()
	return waits(f, func(joined func(recipes.Place)) func(context.Context) (grant, error) {
		return s.with(f, session, path, options{Joined: joined}).Enter
	})
}

// unknown returns the end of the name of a contender that shares no wait queue with the recipe.
func (s spokenLine) unknown() string {
	if latch := "-latch-"; s.theirs != latch {
		return latch
	}
	return "__lock__"
}
