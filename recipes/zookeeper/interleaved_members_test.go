package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The same for two-phase commits and double barriers.
func TestWhatChangesBetweenTwoRequestsOfMembers(t *testing.T) {
	for _, i := range append(interleavedTransactions(), interleavedBarriers()...) {
		t.Run(i.name, i.run)
	}
}

// nthOf matches the n-th request that another function matches.
func nthOf(n int, matches func(zkserver.Request) bool) func(zkserver.Request) bool {
	seen := 0
	return func(r zkserver.Request) bool {
		if matches(r) {
			seen++
			return seen == n
		}
		return false
	}
}

func interleavedTransactions() []interleaving {
	const path = "/app/Tx"
	// decided is a transaction of one site, which knows the decision.
	decided := func(s *interleaved) (mine, theirs recipes.Transaction, site recipes.Site) {
		mine, theirs = transactionOf(s.T, s.one, recipes.CoordinatorOnly), transactionOf(s.T, s.other, "")
		if err := mine.Begin(s.ctx, nil, "1"); err != nil {
			s.Fatal(err)
		}
		site = must[recipes.Site](s.T)(mine.Join(s.ctx, "1"))
		must[recipes.Decision](s.T)(mine.Abort(s.ctx, ""))
		return mine, theirs, site
	}
	return []interleaving{
		{"done, and a child comes before all are deleted", nthOf(2, is(zkserver.OpMulti)), func(s *interleaved) (func(context.Context) error, func() error) {
			_, _, site := decided(s)
			return site.Done, func() error { return barrierAt(s.T, s.other, path+"/new").Set(s.ctx, nil) }
		}, nil},
		{"done, and a child goes before all are deleted", nthOf(2, is(zkserver.OpMulti)), func(s *interleaved) (func(context.Context) error, func() error) {
			_, _, site := decided(s)
			return site.Done, func() error { return s.remove(path + "/coordinator") }
		}, nil},
		{"done, and another deletes it", nthOf(2, is(zkserver.OpMulti)), func(s *interleaved) (func(context.Context) error, func() error) {
			_, theirs, site := decided(s)
			return site.Done, func() error { return theirs.Forget(s.ctx) }
		}, nil},
		{"done, and another deletes it before it is listed", is(zkserver.OpGetChildren2), func(s *interleaved) (func(context.Context) error, func() error) {
			_, theirs, site := decided(s)
			return site.Done, func() error { return theirs.Forget(s.ctx) }
		}, nil},
		{"forgotten, and another has begun", is(zkserver.OpGetChildren2), func(s *interleaved) (func(context.Context) error, func() error) {
			mine, theirs, _ := decided(s)
			if err := barrierAt(s.T, s.other, path+"/done_1").Set(s.ctx, nil); err != nil {
				s.Fatal(err)
			}
			return func(ctx context.Context) error {
					err := mine.Forget(ctx)
					if _, err := theirs.Status(ctx); err != nil {
						s.Errorf("the other transaction: %v", err)
					}
					return err
				}, func() error {
					return errors.Join(theirs.Forget(s.ctx), transactionOf(s.T, s.other, recipes.CoordinatorOnly).Begin(s.ctx, nil, "1"))
				}
		}, nil},
		{"a decision that is deleted before it is read", nthOf(1, reading(zkserver.OpGetData, "/decision")), func(s *interleaved) (func(context.Context) error, func() error) {
			_, theirs, site := decided(s)
			if err := barrierAt(s.T, s.other, path+"/done_1").Set(s.ctx, nil); err != nil {
				s.Fatal(err)
			}
			return func(ctx context.Context) error { _, err := site.Wait(ctx); return err }, func() error { return theirs.Forget(s.ctx) }
		}, recipes.ErrNoTransaction},
		{"a coordinator's place that another takes first", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			begins := transactionOf(s.T, s.other, recipes.CoordinatorOnly)
			if err := begins.Begin(s.ctx, nil, "1", "2"); err != nil {
				s.Fatal(err)
			}
			mine := must[recipes.Site](s.T)(transactionOf(s.T, s.one, "").Join(s.ctx, "1"))
			theirs := must[recipes.Site](s.T)(begins.Join(s.ctx, "2"))
			for _, site := range []recipes.Site{mine, theirs} {
				if err := site.Vote(s.ctx, recipes.VoteCommit); err != nil {
					s.Fatal(err)
				}
			}
			if err := s.remove(path + "/coordinator"); err != nil {
				s.Fatal(err)
			}
			return func(ctx context.Context) error {
				d, err := mine.Wait(ctx)
				if err == nil && !d.Commit {
					s.Errorf("decided %+v", d)
				}
				return err
			}, func() error { _, err := theirs.Wait(s.ctx); return err }
		}, nil},
		{"a vote that is none", is(zkserver.OpGetChildren2), func(s *interleaved) (func(context.Context) error, func() error) { return strange(s, "/s_1") }, recipes.ErrInvalid},
		{"a protocol that is none", is(zkserver.OpGetChildren2), func(s *interleaved) (func(context.Context) error, func() error) {
			return strange(s, "/protocol")
		}, recipes.ErrInvalid},
		{"a decision that is none", is(zkserver.OpGetChildren2), func(s *interleaved) (func(context.Context) error, func() error) {
			return strange(s, "/decision")
		}, recipes.ErrNoTransaction},
	}
}

// strange is a transaction in which another program writes something that means nothing.
func strange(s *interleaved, child string) (func(context.Context) error, func() error) {
	const path = "/app/Tx"
	tx := transactionOf(s.T, s.one, recipes.CoordinatorOnly)
	if err := tx.Begin(s.ctx, nil, "1"); err != nil {
		s.Fatal(err)
	}
	if child == "/decision" {
		must[recipes.Decision](s.T)(tx.Abort(s.ctx, ""))
	}
	return func(ctx context.Context) error {
		if _, err := s.one.Contenders(ctx, path); err != nil { // a listing
			return err
		}
		_, err := tx.Coordinate(ctx)
		return err
	}, func() error { return s.write(path+child, "{strange") }
}

func interleavedBarriers() (all []interleaving) {
	for _, d := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		at := func(s *interleaved, session recipes.Session, size int) recipes.DoubleBarrier {
			return must[recipes.DoubleBarrier](s.T)(session.DoubleBarrier("/b", recipes.DoubleBarrierConfig{Size: size, Dialect: d}))
		}
		enter := func(b recipes.DoubleBarrier) func(context.Context) error {
			return func(ctx context.Context) error { _, err := b.Enter(ctx, nil); return err }
		}
		inside := func(s *interleaved) recipes.Passage {
			return must[recipes.Passage](s.T)(at(s, s.other, 1).Enter(s.ctx, nil))
		}
		all = append(all,
			interleaving{string(d) + ": a round ends before ready is read", reading(zkserver.OpGetData, "/b/ready"), func(s *interleaved) (func(context.Context) error, func() error) {
				p := inside(s)
				return enter(at(s, s.one, 1)), func() error { return p.Leave(s.ctx) }
			}, nil},
			interleaving{string(d) + ": a member leaves before it is watched", nthOf(2, is(zkserver.OpGetChildren2)), func(s *interleaved) (func(context.Context) error, func() error) {
				p := inside(s)
				return enter(at(s, s.one, 1)), func() error { return p.Leave(s.ctx) }
			}, nil},
			interleaving{string(d) + ": all is deleted before the members are counted", func() func(zkserver.Request) bool {
				made := false
				return func(r zkserver.Request) bool {
					made = made || r.Op == zkserver.OpExists && r.Path == "/b/ready" // looks for it when it has a znode
					return made && r.Op == zkserver.OpGetChildren2 && r.Path == "/b"
				}
			}(), func(s *interleaved) (func(context.Context) error, func() error) {
				return enter(at(s, s.one, 2)), func() error {
					for _, n := range s.srv.Tree() {
						if strings.HasPrefix(n.Path, "/b/") {
							if err := s.remove(n.Path); err != nil {
								return err
							}
						}
					}
					return s.remove("/b")
				}
			}, recipes.ErrRemoved},
			interleaving{string(d) + ": an old ready is deleted by another", is(zkserver.OpDelete), func(s *interleaved) (func(context.Context) error, func() error) {
				if err := barrierAt(s.T, s.other, "/b/ready").Set(s.ctx, nil); err != nil {
					s.Fatal(err)
				}
				return enter(at(s, s.one, 1)), func() error { return s.remove("/b/ready") }
			}, nil},
			interleaving{string(d) + ": a member that leaves, and ready goes", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
				p := must[recipes.Passage](s.T)(at(s, s.one, 1).Enter(s.ctx, nil))
				return p.Leave, func() error { return s.remove("/b/ready") }
			}, nil},
			interleaving{string(d) + ": a member that leaves, and its znode goes", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
				p := must[recipes.Passage](s.T)(at(s, s.one, 1).Enter(s.ctx, nil))
				return p.Leave, func() error { return s.remove(p.Znode()) }
			}, nil},
		)
	}
	return append(all,
		interleaving{"a barrier is removed and set again", is(zkserver.OpDelete), func(s *interleaved) (func(context.Context) error, func() error) {
			mine, theirs := barrierAt(s.T, s.one, "/b"), barrierAt(s.T, s.other, "/b")
			if err := mine.Set(s.ctx, nil); err != nil {
				s.Fatal(err)
			}
			return mine.Remove, func() error { return theirs.Remove(s.ctx) }
		}, nil},
		interleaving{"a member that leaves last, and its znode goes", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			p := must[recipes.Passage](s.T)(doubleBarrierAt(s.T, s.one, "/b", 1).Enter(s.ctx, nil))
			return p.Leave, func() error { return s.remove(p.Znode()) }
		}, nil},
		interleaving{"a member that leaves last, and ready goes", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			p := must[recipes.Passage](s.T)(doubleBarrierAt(s.T, s.one, "/b", 1).Enter(s.ctx, nil))
			return p.Leave, func() error { return s.remove("/b/ready") }
		}, nil},
		interleaving{"a member that waits for a surplus one, and is deleted", nthOf(1, reading(zkserver.OpExists, "/b/ready")), func(s *interleaved) (func(context.Context) error, func() error) {
			b := doubleBarrierAt(s.T, s.one, "/b", 2)
			return func(ctx context.Context) error { _, err := b.Enter(ctx, nil); return err }, func() error {
				for _, n := range s.srv.Tree() {
					if strings.Contains(n.Path, "member-") {
						return s.remove(n.Path)
					}
				}
				return errors.New("there is no member")
			}
		}, recipes.ErrRemoved},
	)
}
