package recipestest

import (
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// exclusive checks grants as they happen.
type exclusive struct {
	mu     sync.Mutex
	inside string
	last   recipes.Token
	grants int
	wrong  []string
}

// enter is called after the grant, and leave before it is given back.
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

func exclusion(f *fixture, k kind) { excludes(f, k, options{}) }

func excludes(f *fixture, k kind, o options) {
	const sessions, each, rounds = 3, 3, 3
	var check exclusive
	var contenders errgroup.Group
	for range sessions {
		s := f.open()
		for range each {
			l := k.with(f, s, f.path("a"), o)
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
