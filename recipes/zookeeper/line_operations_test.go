package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// grip is what a contender has got, and how it gives that back.
type grip struct {
	recipes.Grant
	release func(context.Context) error
	share   int  // of the whole line: two permits fill it, ten readers, or one writer
	victim  bool // holds it
	left    bool // is given back
}

const whole = 60

// gripped is for the results of Acquire and its like.
func gripped[G recipes.Grant](g G, release func(G, context.Context) error, err error) (*grip, error) {
	if err != nil {
		if any(g) != nil {
			return nil, fmt.Errorf("something is held in spite of: %v", err)
		}
		return nil, err
	}
	return &grip{Grant: g, release: func(ctx context.Context) error { return release(g, ctx) }, share: whole}, nil
}

func releasing[H recipes.Hold](h H, err error) (*grip, error) {
	return gripped(h, H.Release, err)
}

// stands checks a grant, and that nothing is known against it.
func (g *grip) stands(ctx context.Context) error { return errors.Join(g.Err(), g.Write(ctx)) }

// granted notes a grant, and checks that those that are held may be held together, and that
// tokens grow. The server ends the victim's session at once, where a real one waits for the
// timeout: the next contender may be granted before the victim notes what it had.
func (s *stage) granted(g *grip) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grips = append(s.grips, g)
	sum, slots := 0, map[int]bool{}
	early := func(g *grip) bool { return s.expires && g.victim }
	for _, g := range s.grips {
		if !g.left && g.Err() == nil && !early(g) {
			sum += g.share
			if h, ok := g.Grant.(recipes.SlotHold); ok {
				if slots[h.Slot()] || h.Slot() >= 2 {
					s.Errorf("number %d is granted twice, or is no number", h.Slot())
				}
				slots[h.Slot()] = true
			}
		}
	}
	if sum > whole {
		s.Errorf("%d of %d shares are granted at a time", sum, whole)
	}
	if len(s.grips) > 1 && g.share == whole && !early(g) {
		if last := s.grips[len(s.grips)-2]; last.share == whole && last.Token() >= g.Token() {
			s.Errorf("token %d after %d", g.Token(), last.Token())
		}
	}
}

func (s *stage) giveBack(ctx context.Context, g *grip) error {
	s.mu.Lock()
	g.left = true
	s.mu.Unlock()
	return g.release(ctx)
}

// entry is how to enter a line; try, not to wait.
type entry func(ctx context.Context, s *stage, in recipes.Client, try bool) (*grip, error)

// stance is a way to stand in the line at stagePath.
type stance struct {
	of, variant   string // a method, and its strategy or dialect
	tries, gives  string // the methods to enter if that is possible at once, and to give back
	share         int    // 0: the whole
	enter, blocks entry  // blocks: how others keep a contender waiting; nil: as it does itself
	blockers      int    // so many do; 0: one
	blocksShare   int
}

func (st stance) in(ctx context.Context, s *stage, in recipes.Client, try bool) (*grip, error) {
	g, err := st.enter(ctx, s, in, try)
	if err == nil {
		g.victim = in == s.victim
		if st.share > 0 {
			g.share = st.share
		}
		s.granted(g)
	}
	return g, err
}

// fill has the other session take what there is, and returns how it gives that back.
func (st stance) fill(ctx context.Context, s *stage) (release func() error, first *grip, err error) {
	if st.blocks != nil {
		st.enter, st.share = st.blocks, st.blocksShare
	}
	var all []*grip
	release = func() (err error) {
		for _, g := range all {
			err = errors.Join(err, s.giveBack(ctx, g))
		}
		return err
	}
	for range max(st.blockers, 1) {
		g, err := st.in(ctx, s, s.other, false)
		if err != nil {
			return nil, nil, errors.Join(err, release())
		}
		all = append(all, g)
	}
	return release, all[0], nil
}

// turn is another session's, which waits for nobody for long.
func (st stance) turn(s *stage) error {
	ctx, cancel := context.WithTimeout(s.ctx, time.Second) // virtual
	defer cancel()
	release, _, err := st.fill(ctx, s)
	if err != nil {
		return err
	}
	return release()
}

const (
	aPermit = whole / 2
	aReader = whole / 10
)

type acquirer[H recipes.Hold] interface {
	Acquire(ctx context.Context) (H, error)
	TryAcquire(ctx context.Context) (H, error)
}

func acquiring[H recipes.Hold, A acquirer[H]](open func(s *stage, in recipes.Client) A) entry {
	return func(ctx context.Context, s *stage, in recipes.Client, try bool) (*grip, error) {
		if try {
			return releasing(open(s, in).TryAcquire(ctx))
		}
		return releasing(open(s, in).Acquire(ctx))
	}
}

// readWriter is a lock for readers and writers.
type readWriter[H recipes.Hold] interface {
	AcquireRead(ctx context.Context) (H, error)
	AcquireWrite(ctx context.Context) (H, error)
	TryRead(ctx context.Context) (H, error)
	TryWrite(ctx context.Context) (H, error)
}

// readWrite are the stances of such a lock: readers, writers, and writers behind a reader.
func readWrite[H recipes.Hold, L readWriter[H]](of, variant string, open func(s *stage, in recipes.Client) L) []stance {
	read := func(ctx context.Context, s *stage, in recipes.Client, try bool) (*grip, error) {
		if try {
			return releasing(open(s, in).TryRead(ctx))
		}
		return releasing(open(s, in).AcquireRead(ctx))
	}
	write := func(ctx context.Context, s *stage, in recipes.Client, try bool) (*grip, error) {
		if try {
			return releasing(open(s, in).TryWrite(ctx))
		}
		return releasing(open(s, in).AcquireWrite(ctx))
	}
	return []stance{
		{of: of + ".AcquireRead", variant: variant, tries: of + ".TryRead", gives: "Hold.Release", share: aReader, enter: read, blocks: write},
		{of: of + ".AcquireWrite", variant: variant, tries: of + ".TryWrite", gives: "Hold.Release", enter: write},
		{of: of + ".AcquireWrite", variant: variant + ", readers", tries: of + ".TryWrite", gives: "Hold.Release", enter: write, blocks: read, blocksShare: aReader},
	}
}

func stances() (all []stance) {
	for _, strategy := range recipes.Strategies() {
		named := ", " + string(strategy)
		all = append(all, stance{of: "Lock.Acquire", variant: named, tries: "Lock.TryAcquire", gives: "Hold.Release", enter: acquiring[recipes.Hold](func(s *stage, in recipes.Client) recipes.Lock {
			return s.lock(in, recipes.LockConfig{Strategy: strategy, Data: []byte("who")})
		})}, stance{of: "Election.Campaign", variant: named, gives: "Leadership.Resign", enter: func(ctx context.Context, s *stage, in recipes.Client, _ bool) (*grip, error) {
			e := must.Get(in.Election(stagePath, recipes.ElectionConfig{Strategy: strategy}))(s.T)
			leads, err := e.Campaign(ctx, []byte("x"))
			return gripped(leads, recipes.Leadership.Resign, err)
		}})
		if strategy == recipes.Handoff {
			continue // what follows does as with predecessor then
		}
		all = append(all, stance{of: "Semaphore.Acquire", variant: named, tries: "Semaphore.TryAcquire", gives: "Hold.Release", share: aPermit, blockers: 2, enter: acquiring[recipes.Hold](func(s *stage, in recipes.Client) recipes.Semaphore {
			return s.semaphore(in, recipes.SemaphoreConfig{Strategy: strategy})
		})})
		all = append(all, stance{of: "Slots.Acquire", variant: named, tries: "Slots.TryAcquire", gives: "Hold.Release", share: aPermit, blockers: 2, enter: acquiring[recipes.SlotHold](func(s *stage, in recipes.Client) recipes.Slots {
			return s.slots(in, recipes.SemaphoreConfig{Strategy: strategy})
		})})
		all = append(all, readWrite[recipes.SharedHold]("SharedLock", named, func(s *stage, in recipes.Client) recipes.SharedLock {
			return must.Get(in.SharedLock(stagePath, recipes.SharedLockConfig{Strategy: strategy}))(s.T)
		})...)
		all = append(all, readWrite[recipes.PriorityHold]("PriorityLock", named, func(s *stage, in recipes.Client) recipes.PriorityLock {
			return s.priority(in, recipes.PriorityLockConfig{Strategy: strategy, Priority: 5, Ask: true})
		})...)
	}
	for _, d := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		named := ", " + string(d)
		all = append(all, stance{of: "Lock.Acquire", variant: named, tries: "Lock.TryAcquire", gives: "Hold.Release", enter: acquiring[recipes.Hold](func(s *stage, in recipes.Client) recipes.Lock {
			return s.lock(in, recipes.LockConfig{Dialect: d})
		})}, stance{of: "Semaphore.Acquire", variant: named, tries: "Semaphore.TryAcquire", gives: "Hold.Release", share: aPermit, blockers: 2, enter: acquiring[recipes.Hold](func(s *stage, in recipes.Client) recipes.Semaphore {
			return s.semaphore(in, recipes.SemaphoreConfig{Dialect: d})
		})})
		all = append(all, readWrite[recipes.SharedHold]("SharedLock", named, func(s *stage, in recipes.Client) recipes.SharedLock {
			return must.Get(in.SharedLock(stagePath, recipes.SharedLockConfig{Dialect: d}))(s.T)
		})[0])
	}
	return all
}

// lineOperations are about all that stand in line: they are let in at once, they wait
// between two others, they try, they give back, and they lose what they have.
func lineOperations() (all []operation) {
	for _, st := range stances() {
		turn := func(s *stage) func() error { return func() error { return st.turn(s) } }
		all = append(all,
			st.free(st.of, false),
			operation{st.of + st.variant + ", between two", func(s *stage) doing { return st.between(s) }},
			operation{st.gives + ", " + st.of + st.variant, func(s *stage) doing {
				mine := must.Get(st.in(s.ctx, s, s.victim, false))(s.T)
				s.ok(mine.stands(s.ctx))
				return doing{
					act: func(ctx context.Context) error {
						err := s.giveBack(ctx, mine)
						if !errors.Is(mine.Err(), recipes.ErrReleased) && !s.expires && s.victim.Err() == nil {
							s.Errorf("it is given back, and Err is %v", mine.Err())
						}
						return err
					},
					after: turn(s),
				}
			}},
		)
		if st.of == "Lock.Acquire" || st.of == "Election.Campaign" { // others are watched in the same way
			all = append(all,
				operation{st.of + st.variant + ", whose holder loses its znode", func(s *stage) doing {
					_, theirs, err := st.fill(s.ctx, s)
					s.ok(err)
					var mine *grip
					return doing{
						act:    func(ctx context.Context) (err error) { mine, err = st.in(ctx, s, s.victim, false); return err },
						happen: func() error { theirs.left = true; return s.remove(theirs.Znode()) },
						end:    func() error { return errors.Join(mine.stands(s.ctx), s.giveBack(s.ctx, mine)) },
					}
				}},
				operation{"Grant.Write, " + st.of + st.variant + ", the end of it", func(s *stage) doing {
					mine := must.Get(st.in(s.ctx, s, s.victim, false))(s.T)
					return doing{act: ended(mine), happen: func() error { return s.remove(mine.Znode()) }, after: turn(s)}
				}},
			)
		}
		if st.tries != "" {
			all = append(all, st.free(st.tries, true), operation{st.tries + st.variant, func(s *stage) doing {
				release, _, err := st.fill(s.ctx, s)
				s.ok(err)
				return doing{
					act: func(ctx context.Context) error {
						_, err := st.in(ctx, s, s.victim, true)
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
	return append(all, permitOperations()...)
}

// free has the victim let in at once.
func (st stance) free(method string, try bool) operation {
	return operation{method + st.variant + ", free", func(s *stage) doing {
		var mine *grip
		return doing{
			act:   func(ctx context.Context) (err error) { mine, err = st.in(ctx, s, s.victim, try); return err },
			end:   func() error { return errors.Join(mine.stands(s.ctx), s.giveBack(s.ctx, mine)) },
			after: func() error { return st.turn(s) },
		}
	}}
}

// between has the victim wait behind a holder, and another contender behind the victim.
func (st stance) between(s *stage) doing {
	third := s.session()
	release, _, err := st.fill(s.ctx, s)
	s.ok(err)
	var mine *grip
	return doing{
		act: func(ctx context.Context) (err error) { mine, err = st.in(ctx, s, s.victim, false); return err },
		happen: func() error {
			s.start(func(ctx context.Context) error {
				behind, err := st.in(ctx, s, third, false)
				if err != nil {
					return err
				}
				return errors.Join(behind.stands(ctx), s.giveBack(ctx, behind))
			})
			return release()
		},
		end:   func() error { return errors.Join(mine.stands(s.ctx), s.giveBack(s.ctx, mine)) },
		after: func() error { s.started.Wait(); return st.turn(s) },
	}
}

// permitOperations are those in which the contenders of a semaphore agree on the number
// of permits, and those of writes under a hold.
func permitOperations() (all []operation) {
	permits := func(r zkserver.Request) bool { return r.Op == zkserver.OpMulti && r.Path == stagePath }
	agree := func(dialect recipes.Dialect, before string, between func(s *stage) []meddling) {
		all = append(all, operation{"Semaphore.TryAcquire, " + before + "permits, " + string(dialect), func(s *stage) doing {
			s.ok(s.barrier(s.other).Set(s.ctx, nil))
			if before != "" {
				s.ok(s.write(stagePath, "permits=3"))
			}
			m := s.semaphore(s.victim, recipes.SemaphoreConfig{Dialect: dialect})
			var mine recipes.Hold
			return doing{
				act:     func(ctx context.Context) (err error) { mine, err = m.TryAcquire(ctx); return err },
				end:     func() error { return mine.Release(s.ctx) },
				denied:  []denial{{znode: stagePath, perms: noWrite}},
				between: between(s),
			}
		}})
	}
	agree(recipes.ZooKeeper, "", func(s *stage) []meddling {
		return []meddling{
			{name: "another writes the same", at: permits, do: func() error { return s.write(stagePath, "permits=2") }},
			{name: "another writes a different number, and does not join", at: permits, do: func() error { return s.write(stagePath, "permits=3") }},
		}
	})
	agree(recipes.Kazoo, "", func(s *stage) []meddling {
		return []meddling{
			{name: "another writes the same", at: permits, do: func() error { return s.write(stagePath, "2") }},
			{name: "another writes a different number", at: permits, do: func() error { return s.write(stagePath, "3") }, want: recipes.ErrMismatch},
			{name: "the path is deleted", at: permits, do: func() error { return s.remove(stagePath) }},
		}
	})
	agree(recipes.ZooKeeper, "other ", func(s *stage) []meddling {
		return []meddling{{name: "another deletes the unused path", at: func(r zkserver.Request) bool { return r.Op == zkserver.OpDelete && r.Path == stagePath }, do: func() error { return s.remove(stagePath) }}}
	})
	for _, d := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		all = append(all, operation{"Semaphore.Acquire, " + string(d) + ", one lease", func(s *stage) doing {
			at := func(in recipes.Client) recipes.Semaphore {
				return must.Get(in.Semaphore(stagePath, recipes.SemaphoreConfig{Permits: 1, Dialect: d}))(s.T)
			}
			theirs := must.Get(at(s.other).Acquire(s.ctx))(s.T)
			var mine recipes.Hold
			return doing{
				act:    func(ctx context.Context) (err error) { mine, err = at(s.victim).Acquire(ctx); return err },
				happen: func() error { return theirs.Release(s.ctx) },
				end:    func() error { return mine.Release(s.ctx) },
			}
		}})
	}
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
	}})
}

// shown is a list of contenders without what differs from run to run.
func shown(all []recipes.Contender) string {
	out := ""
	for _, c := range all {
		out += fmt.Sprintln(c.Kind, c.Dialect, c.Sequence, c.Token, c.Holds, c.Mode, c.Successor, string(c.Data))
	}
	return out
}

// standing are questions about a line in which three stand. Two of them wait for the
// first, if one only is let in.
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
	)
}
