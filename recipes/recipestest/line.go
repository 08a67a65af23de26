package recipestest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

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
		{"those who stand in line are told in order", standing},
		{"an empty line is no error", emptyLine},
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
	f.standing(g)
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
	s := f.open(func(c *recipes.Config) { c.Chroot = f.root })
	g := k.granted(f, s, "/")
	if strings.Count(g.Znode(), "/") != 1 {
		f.Errorf("znode %q; want a child of /", g.Znode())
	}
	w := k.waits(f, s, "/")
	f.must(g.GiveBack(f.ctx))
	f.must(w.value1(f).GiveBack(f.ctx))
}

// exclusive checks grants as they happen.
type exclusive struct {
	mu     sync.Mutex
	inside string
	last   recipes.Token
	grants int
	wrong  []string
}

// enter is called when the grant has been got, and leave before it is given up.
func (e *exclusive) enter(g recipes.Grant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inside != "" {
		e.wrong = append(e.wrong, g.Znode()+" was granted while "+e.inside+" was")
	}
	if g.Token() <= e.last {
		e.wrong = append(e.wrong, g.Znode()+" has a token that has not grown")
	}
	e.inside, e.last = g.Znode(), g.Token()
	e.grants++
}

func (e *exclusive) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inside = ""
}

func (e *exclusive) check(f *fixture, grants int) {
	f.Helper()
	for _, w := range e.wrong {
		f.Error(w)
	}
	if e.grants != grants {
		f.Errorf("%d grants; want %d", e.grants, grants)
	}
}

func exclusion(f *fixture, k kind) {
	const sessions, each, rounds = 3, 3, 3
	var check exclusive
	var contenders errgroup.Group
	for range sessions {
		s := f.open()
		for range each {
			l := k.at(f, s, f.path("a"))
			contenders.Go(func() error {
				for range rounds {
					g, err := l.Enter(f.ctx)
					if err != nil {
						return err
					}
					check.enter(g)
					if err := g.Write(f.ctx); err != nil { // hold it for a round trip
						return err
					}
					check.leave()
					if err := g.GiveBack(f.ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	f.must(contenders.Wait())
	check.check(f, sessions*each*rounds)
}

func orderOfJoining(f *fixture, k kind) {
	inOrder(f, k, func(int) recipes.Strategy { return k.strategy })
}

func mixedStrategies(f *fixture, k kind) {
	inOrder(f, k, func(i int) recipes.Strategy {
		all := recipes.Strategies()
		return all[i%len(all)]
	})
}

func inOrder(f *fixture, k kind, strategy func(int) recipes.Strategy) {
	sessions := []recipes.Session{f.open(), f.open()}
	first := k.granted(f, sessions[0], f.path("a"))
	var waiters []*waiter
	for i := range 5 {
		waiters = append(waiters, k.waitsWith(f, sessions[i%2], f.path("a"), options{strategy: strategy(i)}))
	}
	last := first
	for _, w := range waiters {
		for _, later := range waiters[slices.Index(waiters, w):] {
			later.blocked(f)
		}
		f.must(last.GiveBack(f.ctx))
		g := w.value1(f)
		if g.Token() <= last.Token() {
			f.Errorf("token %d after %d", g.Token(), last.Token())
		}
		last = g
	}
}

func joinedTellsThePlace(f *fixture, k kind) {
	s := f.open()
	var holder recipes.Place
	calls := 0
	g, err := k.with(f, s, f.path("a"), options{joined: func(p recipes.Place) {
		holder = p
		calls++
	}}).Enter(f.ctx)
	f.must(err)
	if calls != 1 || holder.Position != 0 || holder.Znode != g.Znode() {
		f.Errorf("%d calls, the last with %+v; want one with position 0 and %s", calls, holder, g.Znode())
	}
	for ahead := 1; ahead <= 3; ahead++ {
		if w := k.waits(f, s, f.path("a")); w.place.Position != ahead || !f.exists(w.place.Znode) {
			f.Errorf("joined with %+v; want position %d and a znode that exists", w.place, ahead)
		}
	}
}

func joinedIsWaitedFor(f *fixture, k kind) {
	entered, proceed := make(chan struct{}), make(chan struct{})
	l := k.with(f, f.open(), f.path("a"), options{joined: func(recipes.Place) {
		close(entered)
		<-proceed
	}})
	call := start(f, func() (grant, error) { return l.Enter(f.ctx) })
	f.await(entered, "joining the line")
	f.awaitChildren(f.path("a"), 1)
	call.blocked(f)
	close(proceed)
	call.value1(f)
}

func notReentrant(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	w := k.waits(f, s, f.path("a"))
	w.blocked(f)
	w.cancel()
	_, err := w.result(f)
	f.is(err, context.Canceled)
	f.standing(g)
}

func independentPaths(f *fixture, k kind) {
	s := f.open()
	a, b := k.granted(f, s, f.path("a")), k.granted(f, s, f.path("b"))
	c := k.granted(f, s, f.path("a", "below"))
	f.standing(a)
	f.standing(b)
	f.standing(c)
}

func foreignChildren(f *fixture, k kind) {
	for _, name := range []string{
		"config", "_c_", "_c_short", "0000000000", k.marker, k.marker + "x", k.marker + "12",
		"x" + k.marker + "0000000000", "_c_not-" + k.marker + "notanumber", k.marker + "99999999999999999999",
		"lock_0000000000", "read-0000000000", "ack_0000000000",
	} {
		if k.marker == "write-" && strings.HasPrefix(name, "read-") {
			continue // one of its own
		}
		f.create(f.path("a", name), "")
	}
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	w := k.waits(f, s, f.path("a"))
	if p := w.place.Position; p != 1 && !(k.hands() && p == recipes.UnknownPosition) {
		f.Errorf("position %d; want 1", p)
	}
	in, err := k.at(f, s, f.path("a")).Standing(f.ctx)
	f.must(err)
	if len(in) != 2 {
		f.Errorf("%d stand in line; want 2", len(in))
	}
	f.must(g.GiveBack(f.ctx))
	f.must(w.value1(f).GiveBack(f.ctx))
}

func standing(f *fixture, k kind) {
	before := time.Now().Add(-time.Minute) // by the server's clock
	one, two := f.open(), f.open()
	g, err := k.with(f, one, f.path("a"), options{data: "first"}).Enter(f.ctx)
	f.must(err)
	second := k.waitsWith(f, two, f.path("a"), options{data: "second"})
	third := k.waitsWith(f, one, f.path("a"), options{data: "third"})
	in, err := k.at(f, two, f.path("a")).Standing(f.ctx)
	f.must(err)
	want := []struct {
		znode, data string
		session     int64
	}{
		{g.Znode(), "first", one.ID()},
		{second.place.Znode, "second", two.ID()},
		{third.place.Znode, "third", one.ID()},
	}
	if len(in) != len(want) {
		f.Fatalf("%d stand in line; want %d", len(in), len(want))
	}
	for i, c := range in {
		w := want[i]
		_, stat := f.read(w.znode)
		if c.Znode != w.znode || string(c.Data) != w.data || c.SessionID != w.session || int64(c.Token) != stat.Czxid {
			f.Errorf("place %d: %+v; want %+v with token %d", i, c, w, stat.Czxid)
		}
		if !c.Since.Equal(time.UnixMilli(stat.Ctime)) || c.Since.Before(before) {
			f.Errorf("place %d: since %v; want %v", i, c.Since, time.UnixMilli(stat.Ctime))
		}
		if !strings.HasSuffix(c.Znode, fmt.Sprintf("%010d", c.Sequence)) {
			f.Errorf("place %d: sequence %d of %s", i, c.Sequence, c.Znode)
		}
	}
	f.must(g.GiveBack(f.ctx))
	if next := second.value1(f); next.Token() != in[1].Token {
		f.Errorf("granted with token %d; the line said %d", next.Token(), in[1].Token)
	}
}

func emptyLine(f *fixture, k kind) {
	l := k.at(f, f.open(), f.path("a"))
	for _, when := range []string{"the path does not exist", "the path exists"} {
		in, err := l.Standing(f.ctx)
		if err != nil || len(in) != 0 {
			f.Errorf("%s: %v, %v; want nobody and no error", when, in, err)
		}
		if when == "the path does not exist" {
			f.create(f.path("a"), "")
		}
	}
}

// handoffCost counts what the strategies say about costs, for the sessions of all
// who wait.
func handoffCost(f *fixture, k kind) {
	const waiting = 4
	holder := f.open()
	g := k.granted(f, holder, f.path("a"))
	var waiters []*waiter
	var sessions []recipes.Session
	for range waiting {
		s := f.open()
		sessions = append(sessions, s)
		waiters = append(waiters, k.waits(f, s, f.path("a")))
		k.watches(f, s, f.path("a"))
	}
	before := make(map[recipes.Session]recipes.Counters)
	for _, s := range sessions {
		before[s] = f.counters(s)
	}
	f.must(g.GiveBack(f.ctx))
	waiters[0].value1(f)
	events, lists, others := int64(1), int64(1), int64(1)
	if k.hands() {
		lists, others = 0, 0
	}
	if k.strategy == recipes.Herd {
		// Every one is woken, lists and, but for the next, watches again.
		events, lists, others = waiting, waiting, waiting
	}
	var sum recipes.Counters
	var gotLists int64
	for i, s := range sessions {
		was := before[s]
		if i == 0 || k.strategy == recipes.Herd {
			f.reach(s, func(c recipes.Counters) bool {
				return c.WatchEvents > was.WatchEvents && (i == 0 || c.ByKind["getData"] > was.ByKind["getData"])
			})
		}
		now := f.counters(s)
		sum.Reads += now.Reads - was.Reads
		sum.Writes += now.Writes - was.Writes
		sum.WatchEvents += now.WatchEvents - was.WatchEvents
		gotLists += listings(now) - listings(was)
	}
	if sum.WatchEvents != events || gotLists != lists || sum.Reads != lists+others || sum.Writes != 0 {
		f.Errorf("one handoff with %d waiting: %d events, %d listings, %d reads, %d writes; want %d, %d, %d, none",
			waiting, sum.WatchEvents, gotLists, sum.Reads, sum.Writes, events, lists, lists+others)
	}
}

// watches waits until the one contender of the session that waits has its watch
// at the server: it has sent for it, and the answer to what was sent after that
// has come.
func (k kind) watches(f *fixture, s recipes.Session, path string) {
	f.Helper()
	f.reach(s, func(c recipes.Counters) bool { return c.ByKind["getData"] >= 1 })
	_, err := k.at(f, s, path).Standing(f.ctx)
	f.must(err)
}

func listings(c recipes.Counters) int64 { return c.ByKind["getChildren2"] + c.ByKind["getChildren"] }

func (f *fixture) counters(s recipes.Session) recipes.Counters {
	f.Helper()
	c, err := s.Counters(f.ctx)
	f.must(err)
	return c
}

// reach asks for a session's counters until they satisfy. Requests of other
// goroutines, which nothing else tells of, have then been sent.
func (f *fixture) reach(s recipes.Session, satisfied func(recipes.Counters) bool) {
	f.Helper()
	for {
		c := f.counters(s)
		if satisfied(c) {
			return
		}
		// A round trip keeps the question from being asked too often.
		if _, _, err := f.outside.Exists("/"); err != nil || f.ctx.Err() != nil {
			f.Fatalf("counters stay at %+v (%v)", c, err)
		}
	}
}

func tooLarge(f *fixture, k kind) {
	s := f.open(func(c *recipes.Config) { c.MaxPacket = 8 << 10 })
	before := f.counters(s)
	_, err := k.with(f, s, f.path("a"), options{data: strings.Repeat("x", 9<<10)}).Enter(f.ctx)
	f.is(err, recipes.ErrTooLarge)
	if after := f.counters(s); after.Writes != before.Writes {
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
