package recipestest

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// An implementation may have no dialects. It says so, with ErrUnsupported, before it
// makes anything. One that has them stands in line with contenders that are made here
// as the other library makes them.
func dialectTests() []test {
	var tests []test
	for _, s := range spokenLines() {
		for _, t := range []struct {
			name string
			run  func(*fixture, spokenLine)
		}{
			{"it waits for one of the library's, and one of the library's for it", dialectInLine},
			{"it keeps the library's names and data, and no other znode", dialectNames},
			{"giving up leaves nothing", dialectGivesUp},
			{"one that looks for none of its own is ErrForeign", dialectForeign},
			{"one that joins after the grant ends the hold", dialectForeignAfterTheGrant},
		} {
			tests = append(tests, test{string(s.dialect) + "/" + s.name + "/" + t.name, func(f *fixture) { t.run(f, s) }})
		}
	}
	return append(tests,
		test{"a dialect that does not exist is ErrInvalid", dialectUnknown},
		test{"of a path in two dialects one is ErrInvalid", dialectMixed},
		test{"data that kazoo cannot read are ErrInvalid", dialectData},
		test{"contenders tell their dialect, and unknown ones are counted", dialectContenders},
		test{"a counter has the library's form, and refuses another", dialectCounter},
		test{"a group lists the library's members", dialectGroup},
		test{"a queue has the library's elements and no other znode", dialectQueue},
		test{"a queue of another dialect is ErrForeign", dialectForeignQueue},
		test{"a double barrier counts the library's members, and is counted", dialectDoubleBarrier},
		test{"a double barrier that meets a member of another dialect is ErrForeign", dialectForeignDoubleBarrier},
	)
}

// spokenLine is a recipe in a dialect.
type spokenLine struct {
	name    string
	dialect recipes.Dialect
	below   string // where contenders stand, after the path
	theirs  string // how the name of the library's contender ends, before the number
	ours    string // a pattern of the znode of a grant, after the path
	take    func(s recipes.Client, path string, d recipes.Dialect, o options) (line, error)
}

func spokenLines() []spokenLine {
	lock := func(s recipes.Client, path string, d recipes.Dialect, o options) (line, error) {
		l, err := s.Lock(path, recipes.LockConfig{Dialect: d, Data: []byte(o.data), Joined: o.joined})
		return lockLine{l}, err
	}
	election := func(s recipes.Client, path string, d recipes.Dialect, o options) (line, error) {
		e, err := s.Election(path, recipes.ElectionConfig{Dialect: d, Joined: o.joined})
		return electionLine{e, o.data}, err
	}
	shared := func(mode recipes.Mode) func(s recipes.Client, path string, d recipes.Dialect, o options) (line, error) {
		return func(s recipes.Client, path string, d recipes.Dialect, o options) (line, error) {
			l, err := s.SharedLock(path, recipes.SharedLockConfig{Dialect: d, Data: []byte(o.data), Joined: o.joined})
			if mode == recipes.Reading {
				return readingLine{l}, err
			}
			return sharedLine{l}, err
		}
	}
	semaphore := func(s recipes.Client, path string, d recipes.Dialect, o options) (line, error) {
		l, err := s.Semaphore(path, recipes.SemaphoreConfig{Permits: 1, Dialect: d, Data: []byte(o.data), Joined: o.joined})
		return semaphoreLine{l}, err
	}
	protection := "_c_" + guid + "-"
	const kazoo = `/[0-9a-f_c-]+`
	return []spokenLine{
		{"lock", recipes.Curator, "", "-lock-", `/` + protection + `lock-\d{10}`, lock},
		{"lock", recipes.Kazoo, "", "__lock__", kazoo + `__lock__\d{10}`, lock},
		{"election", recipes.Curator, "", "-latch-", `/` + protection + `latch-\d{10}`, election},
		{"election", recipes.Kazoo, "", "__lock__", kazoo + `__lock__\d{10}`, election},
		{"reader", recipes.Curator, "", "-__WRIT__", `/` + protection + `__READ__\d{10}`, shared(recipes.Reading)},
		{"writer", recipes.Curator, "", "-__READ__", `/` + protection + `__WRIT__\d{10}`, shared(recipes.Writing)},
		{"reader", recipes.Kazoo, "", "__lock__", kazoo + `__rlock__\d{10}`, shared(recipes.Reading)},
		{"writer", recipes.Kazoo, "", "__rlock__", kazoo + `__lock__\d{10}`, shared(recipes.Writing)},
		{"semaphore", recipes.Curator, "/locks", "-lock-", `/leases/` + protection + `lease-\d{10}`, semaphore},
		{"semaphore", recipes.Kazoo, "-__lock__", "__lock__", `/[0-9a-f]{32}`, semaphore},
	}
}

// readingLine is a shared lock of which only readers are taken.
type readingLine struct{ recipes.SharedLock }

func (l readingLine) Enter(ctx context.Context) (grant, error) {
	h, err := l.AcquireRead(ctx)
	if err != nil {
		return nil, err
	}
	return lockGrant{h}, nil
}

// with opens the recipe, or skips the test if the implementation has no dialects.
func (s spokenLine) with(f *fixture, session recipes.Client, path string, o options) line {
	f.Helper()
	l, err := s.take(session, path, s.dialect, o)
	if err == nil {
		_, err = l.Contenders(f.ctx)
	}
	f.speaks(err, path)
	return l
}

// speaks skips the test if the implementation has no dialects, and has made nothing.
func (f *fixture) speaks(err error, path string) {
	f.Helper()
	if !errors.Is(err, recipes.ErrUnsupported) {
		f.must(err)
		return
	}
	if f.exists(path) {
		f.Errorf("%s was made before %v", path, err)
	}
	f.Skipf("without dialects: %v", err)
}

// theirs makes a znode as the other library makes it, with what is missing above it.
func (f *fixture) theirs(path, data string, flags int32) string {
	f.Helper()
	f.create(path[:strings.LastIndexByte(path, '/')], "")
	made, err := f.outside.Create(path, []byte(data), flags, zk.WorldACL(zk.PermAll))
	f.must(err)
	return made
}

// stands has a contender of the library stand in line.
func (s spokenLine) stands(f *fixture, path string) string {
	f.Helper()
	return f.theirs(path+s.below+"/"+foreignName(s.theirs), "theirs", zk.FlagEphemeral|zk.FlagSequence)
}

// foreignName is a name as Curator or kazoo makes it.
func foreignName(end string) string {
	if strings.HasPrefix(end, "-") {
		return "_c_" + uuid.NewString() + end
	}
	return strings.ReplaceAll(uuid.NewString(), "-", "") + end
}

func dialectInLine(f *fixture, s spokenLine) {
	path, session := f.path("line"), f.open()
	s.with(f, session, path, options{})
	theirs := s.stands(f, path)
	joined := make(chan recipes.Place, 1)
	l := s.with(f, session, path, options{joined: func(p recipes.Place) { joined <- p }})
	waits := start(f, func() (grant, error) { return l.Enter(f.ctx) })
	place := receive(f, joined, "joining the line")
	if place.Znode[len(place.Znode)-10:] <= theirs[len(theirs)-10:] {
		f.Errorf("%s stands before %s", place.Znode, theirs)
	}
	waits.blocked(f)
	later := s.stands(f, path)
	f.must(f.outside.Delete(theirs, -1))
	g := waits.value1(f) // with one of the library's behind it
	f.held(g)
	f.must(g.GiveBack(f.ctx))
	if exists, _, err := f.outside.Exists(later); err != nil || !exists {
		f.Errorf("%s has gone with the grant before it (%v)", later, err)
	}
}

func dialectNames(f *fixture, s spokenLine) {
	path := f.path("names")
	g, err := s.with(f, f.open(), path, options{data: "ours"}).Enter(f.ctx)
	f.must(err)
	if !regexp.MustCompile("^" + regexp.QuoteMeta(path) + s.ours + "$").MatchString(g.Znode()) {
		f.Errorf("the znode is %s; want %s", g.Znode(), s.ours)
	}
	if data, stat := f.read(g.Znode()); data != "ours" || stat.EphemeralOwner == 0 || stat.Czxid != int64(g.Token()) {
		f.Errorf("the znode has %q, %+v", data, stat)
	}
	f.must(g.Write(f.ctx, recipes.Create(f.path("written"), nil)))
	dir := g.Znode()[:strings.LastIndexByte(g.Znode(), '/')]
	if names, _, err := f.outside.Children(dir); err != nil || len(names) != 1 {
		f.Errorf("beside it are %q, %v", names, err)
	}
	f.must(g.GiveBack(f.ctx))
	f.awaitChildren(dir, 0)
}

func dialectGivesUp(f *fixture, s spokenLine) {
	path, session := f.path("gives-up"), f.open()
	s.with(f, session, path, options{})
	theirs := s.stands(f, path)
	joined := make(chan recipes.Place, 1)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	l := s.with(f, session, path, options{joined: func(p recipes.Place) { joined <- p }})
	waits := start(f, func() (grant, error) { return l.Enter(ctx) })
	receive(f, joined, "joining the line")
	cancel()
	_, err := waits.result(f)
	f.is(err, context.Canceled)
	f.awaitChildren(theirs[:strings.LastIndexByte(theirs, '/')], 1)
}

// unknown is how the name of a contender ends with which the recipe shares no wait queue.
func (s spokenLine) unknown() string {
	if latch := "-latch-"; s.theirs != latch {
		return latch
	}
	return "__lock__"
}

func dialectForeign(f *fixture, s spokenLine) {
	path, session := f.path("foreign"), f.open()
	s.with(f, session, path, options{})
	theirs := f.theirs(path+s.below+"/"+foreignName(s.unknown()), "", zk.FlagEphemeral|zk.FlagSequence)
	_, err := s.with(f, session, path, options{}).Enter(f.ctx)
	f.is(err, recipes.ErrForeign)
	var foreign *recipes.ForeignError
	if !errors.As(err, &foreign) || foreign.Znode != theirs || foreign.Recipe == "" {
		f.Errorf("%v does not name %s", err, theirs)
	}
	f.awaitChildren(theirs[:strings.LastIndexByte(theirs, '/')], 1)
}

// dialectForeignAfterTheGrant: nothing keeps the other contender out, so the hold ends. Its
// znode is there until it is released.
func dialectForeignAfterTheGrant(f *fixture, s spokenLine) {
	path := f.path("foreign-later")
	session := f.open(func(cfg *recipes.SessionConfig) { cfg.SessionTimeout = 4 * time.Second }) // two looks are a fifth of it
	g, err := s.with(f, session, path, options{}).Enter(f.ctx)
	f.must(err)
	g.Done() // from then on a loss is reported
	theirs := f.theirs(path+"/"+foreignName(s.unknown()), "", zk.FlagEphemeral|zk.FlagSequence)
	f.lost(g, recipes.ErrForeign)
	if !strings.Contains(g.Err().Error(), theirs) {
		f.Errorf("%v does not name %s", g.Err(), theirs)
	}
	f.is(g.Write(f.ctx, recipes.Create(f.path("written"), nil)), recipes.ErrNotHeld)
	f.is(g.GiveBack(f.ctx), recipes.ErrForeign)
	f.awaitNode(g.Znode(), false)
}
