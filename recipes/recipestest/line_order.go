package recipestest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func inOrder(f *fixture, k kind, strategy func(int) recipes.Strategy) {
	sessions := []recipes.Client{f.open(), f.open()}
	first := k.granted(f, sessions[0], f.path("a"))
	var waiters []*waitingCall[grant]
	for i := range 5 {
		waiters = append(waiters, k.waitsWith(f, sessions[i%2], f.path("a"), options{Strategy: strategy(i)}))
	}
	last := first
	for _, w := range waiters {
		for _, later := range waiters[slices.Index(waiters, w):] {
			later.blocked(f)
		}
		f.must(last.Release(f.ctx))
		g := w.must(f)
		f.failIf(g.Token() <= last.Token(), "token %d after %d", g.Token(), last.Token())
		last = g
	}
}

func joinedReportsThePlace(f *fixture, k kind) {
	s := f.open()
	var holder recipes.Place
	calls := 0
	g, err := k.with(f, s, f.path("a"), options{Joined: func(p recipes.Place) {
		holder = p
		calls++
	}}).Enter(f.ctx)
	f.must(err)
	if calls != 1 || holder.Position != 0 || holder.Znode != g.Znode() {
		f.Errorf("%d calls, the last with %+v; want one with position 0 and znode %s", calls, holder, g.Znode())
	}
	for ahead := 1; ahead <= 3; ahead++ {
		if w := k.waits(f, s, f.path("a")); w.place.Position != ahead || !f.exists(w.place.Znode) {
			f.Errorf("joined with %+v; want position %d and a znode that exists", w.place, ahead)
		}
	}
}

func contendersInOrder(f *fixture, k kind) {
	before := time.Now().Add(-time.Minute) // the server's clock can differ
	one, two := f.open(), f.open()
	g := get(f, k.with(f, one, f.path("a"), options{Data: []byte("first")}).Enter)
	second := k.waitsWith(f, two, f.path("a"), options{Data: []byte("second")})
	third := k.waitsWith(f, one, f.path("a"), options{Data: []byte("third")})
	in := get(f, k.at(f, two, f.path("a")).Contenders)
	want := []struct {
		znode, data string
		session     int64
	}{
		{g.Znode(), "first", one.ID()},
		{second.place.Znode, "second", two.ID()},
		{third.place.Znode, "third", one.ID()},
	}
	if len(in) != len(want) {
		f.Fatalf("%d contenders; want %d", len(in), len(want))
	}
	for i, c := range in {
		w := want[i]
		_, stat := f.read(w.znode)
		if c.Znode != w.znode || string(c.Data) != w.data || c.SessionID != w.session || int64(c.Token) != stat.Czxid {
			f.Errorf("contender %d: %+v; want %+v with token %d", i, c, w, stat.Czxid)
		}
		if !c.Since.Equal(time.UnixMilli(stat.Ctime)) || c.Since.Before(before) {
			f.Errorf("contender %d: since %v; want %v", i, c.Since, time.UnixMilli(stat.Ctime))
		}
		if !strings.HasSuffix(c.Znode, fmt.Sprintf("%010d", c.Sequence)) {
			f.Errorf("contender %d: sequence %d of %s", i, c.Sequence, c.Znode)
		}
	}
	f.must(g.Release(f.ctx))
	next := second.must(f)
	f.failIf(next.Token() != in[1].Token, "granted with token %d; Contenders returned %d", next.Token(), in[1].Token)
}

// exclusive checks at each grant that no other contender has one, and that its token is the
// largest so far.
type exclusive struct {
	f      *fixture
	mu     sync.Mutex
	inside string
	last   recipes.Token
	grants int
}

func (e *exclusive) enter(g recipes.Grant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inside != "" {
		e.f.Errorf("%s was granted while %s was held", g.Znode(), e.inside)
	}
	if g.Token() <= e.last {
		e.f.Errorf("%s has token %d after token %d", g.Znode(), g.Token(), e.last)
	}
	e.inside, e.last = g.Znode(), g.Token()
	e.grants++
}

func (e *exclusive) leave(recipes.Grant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inside = ""
}

// takeTurns has contenders enter, write and release concurrently. enter is called after each
// grant, and leave before its release.
func (f *fixture) takeTurns(contenders []line, turns int, enter, leave func(recipes.Grant)) {
	f.Helper()
	all, ctx := errgroup.WithContext(f.ctx) // after a failure, a grant may stay unreleased, and the others would wait for it
	for _, l := range contenders {
		all.Go(func() error {
			for range turns {
				g, err := l.Enter(ctx)
				if err != nil {
					return err
				}
				enter(g.Grant)
				err = g.Write(f.ctx) // hold it for a round trip
				leave(g.Grant)
				if err != nil {
					return err
				}
				if err := g.Release(f.ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	f.must(all.Wait())
	f.awaitChildren(f.path("a"), 0)
}

func lineOrderTests() []kindTest {
	return []kindTest{
		{"at most one contender holds at a time, and tokens grow", func(f *fixture, k kind) {
			const sessions, each, turns = 3, 3, 3
			var contenders []line
			for range sessions {
				s := f.open()
				for range each {
					contenders = append(contenders, k.at(f, s, f.path("a")))
				}
			}
			check := exclusive{f: f}
			f.takeTurns(contenders, turns, check.enter, check.leave)
			want := len(contenders) * turns
			f.failIf(check.grants != want, "%d grants; want %d", check.grants, want)
		}},
		{"grants follow the order of joining", func(f *fixture, k kind) {
			inOrder(f, k, func(int) recipes.Strategy { return k.strategy })
		}},
		{"contenders of all strategies share one wait queue", func(f *fixture, k kind) {
			inOrder(f, k, func(i int) recipes.Strategy {
				all := recipes.Strategies()
				return all[i%len(all)]
			})
		}},
		{"the call waits until Joined returns", func(f *fixture, k kind) {
			entered, proceed := make(chan struct{}), make(chan struct{})
			l := k.with(f, f.open(), f.path("a"), options{Joined: func(recipes.Place) {
				close(entered)
				<-proceed
			}})
			call := start(f, func() (grant, error) { return l.Enter(f.ctx) })
			f.await(entered, "the call of joined")
			f.awaitChildren(f.path("a"), 1)
			call.blocked(f)
			close(proceed)
			call.must(f)
		}},
		{"children with other names, such as other wait queues, are ignored", func(f *fixture, k kind) {
			for _, name := range []string{
				"config", "_c_", "_c_short", "0000000000", k.way.Marker, k.way.Marker + "x", k.way.Marker + "12",
				"x" + k.way.Marker + "0000000000", "_c_not-" + k.way.Marker + "notanumber", k.way.Marker + "99999999999999999999",
				"lock_0000000000", "reader-0000000000", "ack_0000000000",
			} {
				f.create(f.path("a", name), "")
			}
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			w := k.waits(f, s, f.path("a"))
			p := w.place.Position
			f.failIf(p != 1 && !(k.hands(f) && p == recipes.UnknownPosition), "position %d; want 1", p)
			k.granted(f, s, f.path("a", "below")) // another wait queue
			in := get(f, k.at(f, s, f.path("a")).Contenders)
			f.failIf(len(in) != 2, "%d contenders; want 2", len(in))
			f.must(g.Release(f.ctx))
			f.must(w.must(f).Release(f.ctx))
		}},
		{"an empty wait queue has its path and no contenders", func(f *fixture, k kind) {
			l := k.at(f, f.open(), f.path("a"))
			f.same(l.Path(), f.path("a"))
			for _, when := range []string{"the path does not exist", "the path exists"} {
				in, err := l.Contenders(f.ctx)
				f.failIf(err != nil || len(in) != 0, "%s: %v, %v; want no contender and no error", when, in, err)
				if when == "the path does not exist" {
					f.create(f.path("a"), "")
				}
			}
		}},
	}
}
