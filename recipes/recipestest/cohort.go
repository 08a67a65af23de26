package recipestest

import (
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// cohortKind is a lock whose contenders of one session form a cohort.
func cohortKind(strategy recipes.Strategy) kind {
	return kind{name: "as a line", marker: "lock-", strategy: strategy,
		take: func(s recipes.Session, path string, o options) (line, error) {
			l, err := s.Lock(path, recipes.LockConfig{Strategy: o.strategy, Data: []byte(o.data), Joined: o.joined, Cohort: cohortLimit})
			return lockLine{l}, err
		}}
}

// cohortLimit is how many handovers cohorts are allowed here.
const cohortLimit = 2

// cohortTests are what a lock promises with LockConfig.Cohort: all that lines
// promise, but for what LockConfig says is different, and what is its own.
func cohortTests() []test {
	different := []string{
		"the first is granted, with its znode as documented", // the token
		"grants follow the order of joining",                 // within a cohort
		"strategies stand in one line",                       // in that order
		"joined tells the place, once and before the return", // the cohort's
		"children of other names are ignored",                // it counts contenders
		"those who stand in line are told in order",          // one for the cohort
		"a handoff costs what the strategy says",             // and the token's read and write
		"cancelling leaves the line",                         // the cohort's znode may stay
	}
	same := slices.DeleteFunc(lineTests(), func(t kindTest) bool {
		i := slices.Index(different, t.name)
		if i >= 0 {
			different = slices.Delete(different, i, i+1)
		}
		return i >= 0
	})
	if len(different) > 0 {
		panic("no such tests: " + different[0])
	}
	strategies := []kind{cohortKind(recipes.Handoff), cohortKind(recipes.Predecessor)}
	return slices.Concat(forKinds(strategies, same), []test{
		{"of many cohorts at most one holds, and tokens grow", cohortExclusion},
		{"after so many handovers another session is next", cohortBound},
		{"it stands in line by one znode, and tells its place", cohortPlace},
		{"within the cohort the first come is the first served", cohortOrder},
		{"a handover costs one write, no read and no event", cohortCost},
	}, cohortWaitTests(), cohortHoldTests(), cohortRefusalTests())
}

func (f *fixture) cohort(s recipes.Session, path string, limit int) recipes.Lock {
	f.Helper()
	l, err := s.Lock(path, recipes.LockConfig{Cohort: limit})
	f.must(err)
	return l
}

func cohortExclusion(f *fixture) {
	const each, rounds = 5, 4
	limits := []int{1, 3, 100}
	var check exclusive
	var contenders errgroup.Group
	for _, limit := range limits {
		s := f.open()
		for range each {
			l := f.cohort(s, f.path("a"), limit)
			contenders.Go(func() error {
				for range rounds {
					h, err := l.Acquire(f.ctx)
					if err != nil {
						return err
					}
					check.enter(h)
					if err := h.Write(f.ctx); err != nil {
						return err
					}
					check.leave()
					if err := h.Release(f.ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	f.must(contenders.Wait())
	check.check(f, len(limits)*each*rounds)
	f.awaitChildren(f.path("a"), 0)
}

// cohortLine is a cohort of which one holds and others wait.
type cohortLine struct {
	k       kind
	session recipes.Session
	hold    grant
	waiting []*waiter
}

func (f *fixture) cohortOf(waiting int) *cohortLine {
	f.Helper()
	c := &cohortLine{k: cohortKind(recipes.DefaultStrategy), session: f.open()}
	c.hold = c.k.granted(f, c.session, f.path("a"))
	for range waiting {
		c.waiting = append(c.waiting, c.k.waits(f, c.session, f.path("a")))
	}
	return c
}

// next releases and returns the hold of the next in the cohort.
func (c *cohortLine) next(f *fixture) grant {
	f.Helper()
	f.must(c.hold.GiveBack(f.ctx))
	c.hold, c.waiting = c.waiting[0].value1(f), c.waiting[1:]
	return c.hold
}

func cohortBound(f *fixture) {
	c := f.cohortOf(cohortLimit + 2)
	stranger := c.k.waits(f, f.open(), f.path("a"))
	for range cohortLimit {
		c.next(f)
		stranger.blocked(f)
	}
	f.must(c.hold.GiveBack(f.ctx))
	other := stranger.value1(f)
	for _, w := range c.waiting {
		w.blocked(f)
	}
	if other.Token() <= c.hold.Token() {
		f.Errorf("token %d after %d", other.Token(), c.hold.Token())
	}
	c.hold = other
	c.next(f)
	c.next(f)
	f.must(c.hold.GiveBack(f.ctx))
	f.awaitChildren(f.path("a"), 0)
}

func cohortPlace(f *fixture) {
	c := f.cohortOf(1)
	stranger := f.open()
	first, second := c.k.waits(f, stranger, f.path("a")), c.k.waits(f, stranger, f.path("a"))
	if p := c.waiting[0].place; p.Znode != c.hold.Znode() || p.Position != recipes.UnknownPosition {
		f.Errorf("behind a hold of the cohort joined told %+v; its znode is %s", p, c.hold.Znode())
	}
	if p := second.place; p.Znode != first.place.Znode || p.Position != recipes.UnknownPosition {
		f.Errorf("behind one who waits at %+v joined told %+v", first.place, p)
	}
	line, err := f.lock(stranger, f.path("a")).Contenders(f.ctx)
	f.must(err)
	if len(line) != 2 || line[0].Znode != c.hold.Znode() || line[1].Znode != first.place.Znode {
		f.Errorf("in line stand %+v; want %s and %s", line, c.hold.Znode(), first.place.Znode)
	}
}

func cohortOrder(f *fixture) {
	c := f.cohortOf(4)
	for range 4 { // across the end of a turn
		last := c.hold
		later := slices.Clone(c.waiting[1:])
		h := c.next(f)
		if h.Token() <= last.Token() {
			f.Errorf("token %d after %d", h.Token(), last.Token())
		}
		for _, w := range later {
			w.blocked(f)
		}
	}
	f.must(c.hold.GiveBack(f.ctx))
}

func cohortCost(f *fixture) {
	c := f.cohortOf(cohortLimit)
	c.next(f) // whatever watch there is has been set
	f.standing(c.hold)
	before := f.counters(c.session)
	c.next(f)
	now := f.counters(c.session)
	reads, writes, events := now.Reads-before.Reads, now.Writes-before.Writes, now.WatchEvents-before.WatchEvents
	if reads != 0 || writes != 1 || events != 0 {
		f.Errorf("a handover cost %d reads, %d writes and %d events; want one write", reads, writes, events)
	}
}
