package recipestest

import (
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

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
	var all errgroup.Group
	for _, l := range contenders {
		all.Go(func() error {
			for range turns {
				g, err := l.Enter(f.ctx)
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

func exclusion(f *fixture, k kind) {
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
	if want := len(contenders) * turns; check.grants != want {
		f.Errorf("%d grants; want %d", check.grants, want)
	}
}
