package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func barrierOperations() []operation {
	set := func(s *stage) { s.ok(s.barrier(s.other).Set(s.ctx, nil)) }
	return []operation{
		{"Barrier.IsSet", func(s *stage) doing {
			set(s)
			return asking(s.barrier(s.victim).IsSet, func(is bool) string { return fmt.Sprint(is) })
		}},
		{"Barrier.Set", func(s *stage) doing {
			return doing{
				act:      func(ctx context.Context) error { return s.barrier(s.victim).Set(ctx, nil) },
				happened: func() bool { return s.present(stagePath) },
				denied:   []denial{{znode: "/app", perms: noCreate}},
			}
		}},
		{"Barrier.Remove", func(s *stage) doing {
			set(s)
			return doing{
				act:      s.barrier(s.victim).Remove,
				happened: func() bool { return !s.present(stagePath) },
				denied:   []denial{{znode: "/app", perms: noDelete}},
				between:  []meddling{{name: "another removes it", at: zktest.Op(zkserver.OpDelete), do: func() error { return s.barrier(s.other).Remove(s.ctx) }}},
			}
		}},
		{"Barrier.Wait", func(s *stage) doing {
			set(s)
			return doing{act: s.barrier(s.victim).Wait, happen: func() error { return s.barrier(s.other).Remove(s.ctx) }}
		}},
	}
}

// arrival is the result of Enter in another goroutine.
type arrival struct {
	recipes.Passage
	err error
}

// enters calls Enter for a member of the session, in another goroutine.
func (s *stage) enters(ctx context.Context, in recipes.Recipes, d recipes.Dialect) <-chan arrival {
	entered := make(chan arrival, 1)
	go func() {
		p, err := s.double(in, d, 2).Enter(ctx, nil)
		entered <- arrival{p, err}
	}()
	return entered
}

// leaveBoth makes two members leave.
func (s *stage) leaveBoth(one, two recipes.Passage) error {
	return s.acts(s.ctx, one.Leave, func() error { s.start(two.Leave); return nil })
}

// passTogether makes two members of the other session enter and leave.
func (s *stage) passTogether(d recipes.Dialect) error {
	one := s.enters(s.ctx, s.other, d)
	synctest.Wait()
	two := s.enters(s.ctx, s.other, d)
	a, b := <-one, <-two
	if err := errors.Join(a.err, b.err); err != nil {
		return fmt.Errorf("two that enter: %w", err)
	}
	return s.leaveBoth(a, b)
}

// entering makes the victim enter, before another member or after it. If the victim fails,
// the other member gives up. If it has entered with the znode that the victim left, it
// leaves alone.
func (s *stage) entering(d recipes.Dialect, first bool) doing {
	var mine, theirs arrival
	var others <-chan arrival
	waiting, giveUp := context.WithCancel(s.ctx)
	come := func() error { others = s.enters(waiting, s.other, d); return nil }
	do := doing{
		act: func(ctx context.Context) error {
			mine.Passage, mine.err = s.double(s.victim, d, 2).Enter(ctx, nil)
			return mine.err
		},
		end: func() error {
			if theirs = <-others; theirs.err != nil {
				return theirs.err
			}
			if !strings.Contains(fmt.Sprint(theirs.Members()), mine.Znode()) {
				s.Errorf("the other has entered with %v, without %s", theirs.Members(), mine.Znode())
			}
			return errors.Join(mine.Write(s.ctx), s.leaveBoth(mine, theirs))
		},
	}
	if first {
		do.happen = come
	} else {
		s.ok(come())
	}
	leave := func() (err error) {
		giveUp()
		if theirs = <-others; theirs.err == nil {
			err = theirs.Leave(s.ctx)
		}
		calm() // the member's znode is deleted in the background
		return err
	}
	do.failed = func() error {
		err := leave()
		if waiting, giveUp = context.WithCancel(s.ctx); !first && !s.lost() {
			err = errors.Join(err, come())
			synctest.Wait()
		}
		return err
	}
	do.after = func() error {
		if s.lost() && mine.err == nil {
			s.ok(leave())
		}
		return s.passTogether(d)
	}
	return do
}

// leaving makes the victim leave, before the other member or after it.
func (s *stage) leaving(d recipes.Dialect, first bool) doing {
	one, two := s.enters(s.ctx, s.victim, d), s.enters(s.ctx, s.other, d)
	mine, theirs := <-one, <-two
	s.ok(errors.Join(mine.err, theirs.err))
	leave := func() error { s.start(theirs.Leave); return nil }
	do := doing{act: mine.Leave, happen: leave, lost: []error{recipes.ErrNotHeld}}
	if !first {
		s.ok(leave())
		do.happen = nil
	}
	do.after = func() error { s.started.Wait(); return s.passTogether(d) }
	return do
}

func doubleBarrierOperations() (all []operation) {
	for _, d := range recipes.Dialects() {
		for _, first := range []bool{true, false} {
			named := fmt.Sprintf(", %s, the first %v", d, first)
			all = append(all,
				operation{"DoubleBarrier.Enter" + named, func(s *stage) doing { return s.entering(d, first) }},
				operation{"Passage.Leave" + named, func(s *stage) doing { return s.leaving(d, first) }},
				operation{"Passage.Leave, given up" + named, func(s *stage) doing { // the other member leaves in any case
					do := s.leaving(d, first)
					do.act = givenUp(do.act, func(context.Context) error { return nil })
					return do
				}},
			)
		}
		inside := func(s *stage, in recipes.Client) recipes.Passage {
			return must.Get(s.double(in, d, 1).Enter(s.ctx, nil))(s.T)
		}
		enter := func(s *stage, size int) func(context.Context) error {
			return func(ctx context.Context) error { _, err := s.double(s.victim, d, size).Enter(ctx, nil); return err }
		}
		one := func(method string, prepare func(s *stage) doing) {
			all = append(all, operation{method + ", " + string(d) + ", alone", prepare})
		}
		one("Passage.Leave", func(s *stage) doing {
			p := inside(s, s.victim)
			return doing{
				act:    p.Leave,
				lost:   []error{recipes.ErrNotHeld},
				denied: []denial{{znode: stagePath, perms: noDelete}},
				between: []meddling{
					{name: "ready goes", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.remove(stagePath + "/ready") }},
					{name: "its znode goes", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.remove(p.Znode()) }},
				},
			}
		})
		one("DoubleBarrier.Enter", func(s *stage) doing {
			return doing{
				act:      enter(s, 1),
				happened: func() bool { return s.present(stagePath + "/ready") }, // ready keeps others out while the member is inside
				harmless: true,
			}
		})
		if d == recipes.ZooKeeper {
			one("DoubleBarrier.Enter, after a generation", func(s *stage) doing {
				p := inside(s, s.victim)
				s.ok(s.remove(p.Znode()))
				return doing{act: enter(s, 1), denied: []denial{{znode: stagePath + "/ready", perms: noWrite}}}
			})
			one("DoubleBarrier.Enter, with a surplus member", func(s *stage) doing {
				do := s.entering(d, true)
				do.between = []meddling{{name: "it is deleted", at: zktest.Nth(1, zktest.Op(zkserver.OpExists, "/ready")), do: func() error { return s.removeLike("member-") }, want: recipes.ErrRemoved}}
				return do
			})
			continue
		}
		one("DoubleBarrier.Enter, beside a member", func(s *stage) doing {
			p := inside(s, s.other)
			leaves := func() error { return p.Leave(s.ctx) }
			return doing{act: enter(s, 1), between: []meddling{
				{name: "a round ends before ready is read", at: zktest.Op(zkserver.OpGetData, "/ready"), do: leaves},
				{name: "a member leaves before it is watched", at: zktest.Nth(2, zktest.Op(zkserver.OpGetChildren2)), do: leaves},
			}, happen: leaves}
		})
		one("DoubleBarrier.Enter, of two", func(s *stage) doing {
			do, made := s.entering(d, true), false
			do.between = []meddling{{
				name: "all is deleted before the members are counted",
				at: func(r zkserver.Request) bool {
					made = made || r.Op == zkserver.OpExists && r.Path == stagePath+"/ready" // the member's znode exists when the member reads ready
					return made && r.Op == zkserver.OpGetChildren2 && r.Path == stagePath
				},
				do: func() error {
					for _, n := range s.srv.Tree() {
						if strings.HasPrefix(n.Path, stagePath+"/") {
							s.ok(s.remove(n.Path))
						}
					}
					return s.remove(stagePath)
				},
				want: recipes.ErrRemoved,
			}}
			return do
		})
		one("DoubleBarrier.Enter, an old ready", func(s *stage) doing {
			s.ok(zktest.BarrierAt(s.T, s.other, stagePath+"/ready").Set(s.ctx, nil))
			return doing{act: enter(s, 1), between: []meddling{{name: "another deletes it", at: zktest.Op(zkserver.OpDelete), do: func() error { return s.remove(stagePath + "/ready") }}}}
		})
	}
	return all
}
