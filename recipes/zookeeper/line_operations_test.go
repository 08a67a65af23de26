package zookeeper_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// heldGrant is a grant, with its holder and the way by which it was acquired.
type heldGrant struct {
	recipes.Grant
	way    way
	victim bool // the victim holds it
	left   bool // the holder has given it back
}

// How much of a path a hold takes: a path has room for two permits, ten readers, or one writer.
const (
	whole   = 60
	aPermit = whole / 2
	aReader = whole / 10
)

// stillHeld checks that the grant reports no loss, and that a guarded write succeeds.
func (g *heldGrant) stillHeld(ctx context.Context) error { return errors.Join(g.Err(), g.Write(ctx)) }

// granted records a grant. It checks that the grants that are held may be held together, and
// that tokens grow. This server expires the victim's session at once, where a real one waits
// for the timeout. So the next contender may be granted before the victim records its grant:
// the checks ignore that grant.
func (s *stage) granted(g *heldGrant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants = append(s.grants, g)
	sum, slots := 0, map[int]bool{}
	early := func(g *heldGrant) bool { return s.expires && g.victim }
	for _, g := range s.grants {
		if !g.left && g.Err() == nil && !early(g) {
			sum += g.way.part()
			if h, ok := g.Grant.(recipes.SlotHold); ok {
				if slots[h.Slot()] || h.Slot() >= 2 {
					s.Errorf("slot %d is granted twice, or is out of range", h.Slot())
				}
				slots[h.Slot()] = true
			}
		}
	}
	if sum > whole {
		s.Errorf("%d of %d shares are granted at the same time", sum, whole)
	}
	if len(s.grants) > 1 && g.way.part() == whole && !early(g) {
		if last := s.grants[len(s.grants)-2]; last.way.part() == whole && last.Token() >= g.Token() {
			s.Errorf("token %d after %d", g.Token(), last.Token())
		}
	}
}

// blockedWay is a way to get a grant at stagePath, and the grants that keep it waiting.
type blockedWay struct {
	way
	variant string
	blocker way // the other session holds grants of this way
	count   int // how many of those grants keep a contender waiting
}

// get gets a grant at stagePath, and records it.
func (s *stage) get(ctx context.Context, w way, in recipes.Client, try bool) (*heldGrant, error) {
	e := w.at(s.T, in, stagePath)
	get := e.Get
	if try {
		get = e.Try
	}
	got, err := get(ctx)
	if err != nil {
		return nil, err
	}
	g := &heldGrant{Grant: got, way: w, victim: in == s.victim}
	s.granted(g)
	return g, nil
}

func (s *stage) giveBack(ctx context.Context, g *heldGrant) error {
	s.mu.Lock()
	g.left = true
	s.mu.Unlock()
	return g.way.GiveBack(ctx, g.Grant)
}

// fill makes the other session acquire all that can be held, and returns a function that
// gives it back.
func (st blockedWay) fill(ctx context.Context, s *stage) (release func() error, first *heldGrant, err error) {
	var all []*heldGrant
	release = func() (err error) {
		for _, g := range all {
			err = errors.Join(err, s.giveBack(ctx, g))
		}
		return err
	}
	for range st.count {
		g, err := s.get(ctx, st.blocker, s.other, false)
		if err != nil {
			return nil, nil, errors.Join(err, release())
		}
		all = append(all, g)
	}
	return release, all[0], nil
}

// turn fills the path and gives it back. It fails if that takes longer than a second.
func (st blockedWay) turn(s *stage) error {
	ctx, cancel := context.WithTimeout(s.ctx, time.Second) // virtual
	defer cancel()
	release, _, err := st.fill(ctx, s)
	if err != nil {
		return err
	}
	return release()
}

// blockedWays returns a blockedWay for each way among the operations. Readers wait for a writer. Writers wait for a
// writer, or for a reader.
func blockedWays() (all []blockedWay) {
	for _, w := range ways(operated) {
		st := blockedWay{way: w, variant: ", " + cmp.Or(string(w.options.Strategy), string(w.options.Dialect)), blocker: w, count: 1}
		switch {
		case w.rival == nil:
			st.count = whole / w.part()
		case w.share == aReader:
			st.blocker = w.rivals()
		default:
			behind := st
			behind.variant, behind.blocker = st.variant+", readers", w.rivals()
			all = append(all, behind)
		}
		all = append(all, st)
	}
	return all
}

// lineOperations are the operations of all contenders. Each contender is granted at once, waits
// between two others, tries, gives its grant back, or loses it.
func lineOperations() (all []operation) {
	for _, st := range blockedWays() {
		turn := func(s *stage) func() error { return func() error { return st.turn(s) } }
		all = append(all,
			st.free(st.Method, false),
			operation{st.Method + st.variant + ", between two", func(s *stage) doing { return st.between(s) }},
			operation{st.Gives + ", " + st.Method + st.variant, func(s *stage) doing {
				mine := must.Get(s.get(s.ctx, st.way, s.victim, false))(s.T)
				s.ok(mine.stillHeld(s.ctx))
				return doing{
					act: func(ctx context.Context) error {
						err := s.giveBack(ctx, mine)
						if !errors.Is(mine.Err(), recipes.ErrReleased) && !s.expires && s.victim.Err() == nil {
							s.Errorf("given back, but Err is %v", mine.Err())
						}
						return err
					},
					after: turn(s),
				}
			}},
		)
		if st.Method == "Lock.Acquire" || st.Method == "Election.Campaign" { // the grants of other ways watch in the same way
			all = append(all,
				operation{st.Method + st.variant + ", whose holder loses its znode", func(s *stage) doing {
					_, theirs, err := st.fill(s.ctx, s)
					s.ok(err)
					var mine *heldGrant
					return doing{
						act:    func(ctx context.Context) (err error) { mine, err = s.get(ctx, st.way, s.victim, false); return err },
						happen: func() error { theirs.left = true; return s.remove(theirs.Znode()) },
						end:    func() error { return errors.Join(mine.stillHeld(s.ctx), s.giveBack(s.ctx, mine)) },
					}
				}},
				operation{"Grant.Write, " + st.Method + st.variant + ", the end of it", func(s *stage) doing {
					mine := must.Get(s.get(s.ctx, st.way, s.victim, false))(s.T)
					return doing{act: ended(mine), happen: func() error { return s.remove(mine.Znode()) }, after: turn(s)}
				}},
			)
		}
		if st.Tries != "" {
			all = append(all, st.free(st.Tries, true), operation{st.Tries + st.variant, func(s *stage) doing {
				release, _, err := st.fill(s.ctx, s)
				s.ok(err)
				return doing{
					act: func(ctx context.Context) error {
						_, err := s.get(ctx, st.way, s.victim, true)
						switch {
						case err == nil:
							return errors.New("granted beside the holder")
						case errors.Is(err, recipes.ErrContended) && !errors.Is(err, context.Canceled):
							return nil
						}
						return err
					},
					after: func() error { return errors.Join(release(), st.turn(s)) },
				}
			}})
		}
	}
	all = append(all, lostGrants()...)
	return append(all, operation{"Grant.Write, a hold", func(s *stage) doing {
		h := must.Get(s.lock(s.victim, recipes.LockConfig{}).Acquire(s.ctx))(s.T)
		return doing{
			act:      func(ctx context.Context) error { return h.Write(ctx, recipes.Create("/app/data", nil)) },
			happened: func() bool { return s.present("/app/data") },
			once:     true,
			lost:     []error{recipes.ErrNotHeld},
			single:   true,
			end:      func() error { return h.Release(s.ctx) },
		}
	}}, turnOperation("OncePer, a first turn", false), turnOperation("Turn.Count, a turn", true))
}

// lostGrants are the operations in which another client deletes the znode of a grant, and may create
// it again while no plugin runs, or writes to it.
func lostGrants() (all []operation) {
	lost := func(w way, how string, happen func(s *stage, znode string) error) {
		all = append(all, operation{"Grant.Write, " + w.Method + ", whose znode is " + how, func(s *stage) doing {
			mine := must.Get(s.get(s.ctx, w, s.victim, false))(s.T)
			const other = stagePath + "-other"
			return doing{
				act: func(ctx context.Context) error {
					mine.Done()
					time.Sleep(time.Millisecond) // virtual: the plugin watches
					if _, err := s.victim.Contenders(ctx, other); err != nil {
						return err
					}
					return ended(mine)(ctx)
				},
				happen: func() error { return happen(s, mine.Znode()) },
				deaths: []meddling{{name: "its znode is created again", at: func(r zkserver.Request) bool { return r.Path == other }, do: func() error {
					return errors.Join(s.remove(mine.Znode()), zktest.BarrierAt(s.T, s.other, mine.Znode()).Set(s.ctx, []byte("theirs")))
				}, then: func() {
					if n := s.node(mine.Znode()); n == nil || string(n.Data) != "theirs" || n.Stat.Version != 0 {
						s.Errorf("the znode that another client has created is %+v", n)
					}
				}}},
			}
		}})
	}
	seen := map[string]bool{}
	for _, w := range ways(held) {
		if seen[w.Method] {
			continue
		}
		seen[w.Method] = true
		lost(w, "deleted", (*stage).remove)
		if w.Method == "Slots.Acquire" { // the number of the slot is in the data
			lost(w, "written", func(s *stage, znode string) error {
				if err := s.write(znode, "x"); !errors.Is(err, recipes.ErrNoNode) { // the session may have ended
					return err
				}
				return nil
			})
		}
	}
	return all
}

// turnOperation asks for a turn of a period, or counts one.
func turnOperation(name string, counts bool) operation {
	return operation{name, func(s *stage) doing {
		h := must.Get(s.lock(s.victim, recipes.LockConfig{}).Acquire(s.ctx))(s.T)
		ask := func(ctx context.Context) (*recipes.Turn, error) {
			return recipes.OncePer(ctx, h, s.configuration(s.victim), time.Hour)
		}
		record := stagePath + "/once"
		if !counts {
			return doing{
				act:      func(ctx context.Context) error { _, err := ask(ctx); return err },
				happened: func() bool { return s.present(record) },
				harmless: true,
				lost:     []error{recipes.ErrNotHeld},
				end:      func() error { return h.Release(s.ctx) },
			}
		}
		turn := must.Get(ask(s.ctx))(s.T)
		return doing{
			act:      turn.Count,
			happened: func() bool { return s.holds(record, fmt.Sprint(turn.Began().UnixMilli())) },
			harmless: true,
			lost:     []error{recipes.ErrNotHeld},
			end:      func() error { return h.Release(s.ctx) },
		}
	}}
}

// free makes the victim get a grant at once.
func (st blockedWay) free(method string, try bool) operation {
	return operation{method + st.variant + ", free", func(s *stage) doing {
		var mine *heldGrant
		return doing{
			act:   func(ctx context.Context) (err error) { mine, err = s.get(ctx, st.way, s.victim, try); return err },
			end:   func() error { return errors.Join(mine.stillHeld(s.ctx), s.giveBack(s.ctx, mine)) },
			after: func() error { return st.turn(s) },
		}
	}}
}

// between makes the victim wait behind a holder, and another contender behind the victim. A victim with
// a plugin calls its session when it has joined, and keeps its place.
func (st blockedWay) between(s *stage) doing {
	third := s.session()
	release, _, err := st.fill(s.ctx, s)
	s.ok(err)
	w, joined := st.way, make(chan recipes.Place, 2)
	if s.host != nil && w.Kind != "" {
		w.options.Joined = func(p recipes.Place) {
			joined <- p
			_, err := s.victim.Contenders(s.ctx, "/other")
			s.fails("a call when it has joined", err)
		}
	}
	var mine *heldGrant
	return doing{
		act: func(ctx context.Context) (err error) {
			joined = make(chan recipes.Place, 2)
			if mine, err = s.get(ctx, w, s.victim, false); w.options.Joined == nil || err != nil {
				return err
			}
			if p := <-joined; len(joined) > 0 || st.keepsPlace() && p.Znode != mine.Znode() {
				s.Errorf("joined as %s, granted as %s, and joined %d times more", p.Znode, mine.Znode(), len(joined))
			}
			return nil
		},
		happen: func() error {
			s.start(func(ctx context.Context) error {
				behind, err := s.get(ctx, st.way, third, false)
				if err != nil {
					return err
				}
				return errors.Join(behind.stillHeld(ctx), s.giveBack(ctx, behind))
			})
			return release()
		},
		end:   func() error { return errors.Join(mine.stillHeld(s.ctx), s.giveBack(s.ctx, mine)) },
		after: func() error { s.started.Wait(); return st.turn(s) },
	}
}

// keepsPlace reports whether a contender is granted by the znode with which it has joined, also in
// another plugin. A priority lock is claimed by another znode. Another library's permit is too, and a
// plugin does not resume its waiter.
func (w way) keepsPlace() bool {
	return w.Kind != recipes.KindPriorityLock && (w.Kind != recipes.KindSemaphore || w.options.Dialect == "")
}

// shown shows contenders without the fields that differ from run to run.
func shown(all []recipes.Contender) string {
	out := ""
	for _, c := range all {
		out += fmt.Sprintln(c.Kind, c.Dialect, c.Sequence, c.Token, c.Holds, c.Mode, c.Successor, string(c.Data))
	}
	return out
}

// standing is an operation that reads a wait queue of three contenders. If only one can be
// granted, two of them wait for the first.
func standing(name string, enter func(ctx context.Context, s *stage, i int) error, ask func(s *stage) func(context.Context) ([]recipes.Contender, error)) operation {
	return operation{name, func(s *stage) doing {
		for i := range 3 {
			go func() {
				if err := enter(s.ctx, s, i); err != nil && s.ctx.Err() == nil && s.other.Err() == nil {
					s.Error(err)
				}
			}()
			synctest.Wait()
		}
		return asking(ask(s), shown)
	}}
}

func questionsAboutLines() (all []operation) {
	for _, d := range recipes.Dialects() {
		named, lock := ", "+string(d), recipes.LockConfig{Dialect: d, Data: []byte("x")}
		shared := func(s *stage, in recipes.Client) recipes.SharedLock {
			return must.Get(in.SharedLock(stagePath, recipes.SharedLockConfig{Dialect: d}))(s.T)
		}
		all = append(all,
			standing("Lock.Contenders"+named, func(ctx context.Context, s *stage, _ int) error { return sole(s.lock(s.other, lock).Acquire)(ctx) },
				func(s *stage) func(context.Context) ([]recipes.Contender, error) {
					return s.lock(s.victim, lock).Contenders
				}),
			standing("SharedLock.Contenders"+named, func(ctx context.Context, s *stage, i int) error {
				if i == 1 {
					return sole(shared(s, s.other).AcquireWrite)(ctx)
				}
				return sole(shared(s, s.other).AcquireRead)(ctx)
			}, func(s *stage) func(context.Context) ([]recipes.Contender, error) {
				return shared(s, s.victim).Contenders
			}),
			standing("Semaphore.Contenders"+named, func(ctx context.Context, s *stage, _ int) error {
				return sole(s.semaphore(s.other, recipes.SemaphoreConfig{Dialect: d}).Acquire)(ctx)
			}, func(s *stage) func(context.Context) ([]recipes.Contender, error) {
				return s.semaphore(s.victim, recipes.SemaphoreConfig{Dialect: d}).Contenders
			}),
		)
	}
	return append(all,
		standing("PriorityLock.Contenders", func(ctx context.Context, s *stage, i int) error {
			return sole(s.priority(s.other, recipes.PriorityLockConfig{Priority: 5 - i}).AcquireWrite)(ctx)
		}, func(s *stage) func(context.Context) ([]recipes.Contender, error) {
			return s.priority(s.victim, recipes.PriorityLockConfig{}).Contenders
		}),
		operation{"Recipes.Contenders", func(s *stage) doing {
			m := s.semaphore(s.other, recipes.SemaphoreConfig{})
			must.Get(m.Acquire(s.ctx))(s.T)
			must.Get(m.Acquire(s.ctx))(s.T)
			return asking(func(ctx context.Context) (recipes.Lines, error) { return s.victim.Contenders(ctx, stagePath) },
				func(l recipes.Lines) string { return fmt.Sprint(shown(l.Contenders), l.Permits, l.Unknown) })
		}},
		operation{"Recipes.Children", func(s *stage) doing {
			must.Get(must.Get(s.other.Names(stagePath))(s.T).Register(s.ctx, "b", nil))(s.T)
			must.Get(must.Get(s.other.Names(stagePath))(s.T).Register(s.ctx, "a", nil))(s.T)
			return asking(func(ctx context.Context) ([]string, error) { return s.victim.Children(ctx, stagePath) },
				func(names []string) string { return fmt.Sprint(names) })
		}},
	)
}

func lockWays() []way {
	w := wayOf("lock", way{
		shares: map[recipes.Dialect][]string{
			recipes.ZooKeeper: {"a mutex", "our lock"},
			recipes.Curator:   {"a mutex", "our lock"},
			recipes.Kazoo:     {"kazoo's lock"},
		},
		uses: []use{{operated | held, options{Dialect: recipes.Curator}}, {operated, options{Dialect: recipes.Kazoo}}},
	}, func(o *options) { o.Data = []byte("who") })
	for _, strategy := range recipes.Strategies() {
		w.uses = append(w.uses, use{operated | held | moved, options{Strategy: strategy}})
	}
	return []way{w}
}
