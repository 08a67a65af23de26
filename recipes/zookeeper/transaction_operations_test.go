package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// voted returns a site of the session that has joined and voted.
func (s *stage) voted(in recipes.Recipes, name string, vote recipes.Vote) recipes.Site {
	site := must.Get(s.transaction(in, "").Join(s.ctx, name))(s.T)
	s.ok(site.Vote(s.ctx, vote))
	return site
}

// deciding is an act that returns a decision, and checks it.
func deciding(wait func(context.Context) (recipes.Decision, error), commit bool) func(context.Context) error {
	return func(ctx context.Context) error {
		d, err := wait(ctx)
		if err == nil && d.Commit != commit {
			err = fmt.Errorf("decided %+v", d)
		}
		return err
	}
}

// finish checks that all sites get the same decision, and that they can complete the
// transaction. If the victim has lost its session, its site joins again in another one. Without
// that site's vote the transaction aborts.
func (s *stage) finish(commit bool, sites ...recipes.Site) error {
	var decided []recipes.Decision
	dead := false // with own-nodes, a site dies with its session
	for _, site := range sites {
		d, err := site.Wait(s.ctx)
		if errors.Is(err, recipes.ErrSessionLost) {
			site, err = s.transaction(s.survivor(), "").Join(s.ctx, site.Name())
			if errors.Is(err, recipes.ErrNoTransaction) && len(decided) > 0 {
				continue // the site was done before its session ended
			}
			if dead = errors.Is(err, recipes.ErrNotHeld); dead {
				continue
			}
			if err == nil {
				d, err = site.Wait(s.ctx)
			}
		}
		if decided = append(decided, d); err != nil || d != decided[0] || d.Commit != commit && !s.lost() {
			return fmt.Errorf("decided %+v, %w", decided, err)
		}
		if err := site.Done(s.ctx); err != nil {
			return err
		}
	}
	if s.present(stagePath) && !dead {
		return errors.New("all sites are done, but the transaction still exists")
	}
	return nil
}

func transactionOperations() (all []operation) {
	decision := func(s *stage) func() bool { return func() bool { return s.present(stagePath + "/decision") } }
	// replaced has the sites finish, and another client begin another transaction at the path.
	replaced := func(s *stage, want error, commit bool, sites ...recipes.Site) []meddling {
		another := s.transaction(s.other, "")
		return []meddling{{name: "another transaction begins", at: zktest.Op(zkserver.OpMulti), do: func() error {
			return errors.Join(s.finish(commit, sites...), another.Begin(s.ctx, nil, "another"))
		}, want: want, then: func() {
			if status, err := another.Status(s.ctx); err != nil || !status.Coordinated || status.Decision != nil {
				s.Errorf("the other transaction: %+v, %v", status, err)
			}
		}}}
	}
	for _, v := range recipes.Variants() {
		// begun returns a transaction that the session has begun.
		begun := func(s *stage, in recipes.Client, names ...string) recipes.Transaction {
			tx := s.transaction(in, v)
			s.ok(tx.Begin(s.ctx, []byte("payload"), names...))
			return tx
		}
		row := func(name string, prepare func(s *stage) doing) {
			all = append(all, operation{name + ", " + string(v), prepare})
		}
		row("Transaction.Begin", func(s *stage) doing {
			tx, began := s.transaction(s.victim, v), false
			return doing{
				act: func(ctx context.Context) error {
					err := tx.Begin(ctx, []byte("payload"), "1")
					began = err == nil
					return err
				},
				happened: func() bool { return s.present(stagePath) },
				once:     true,
				denied:   []denial{{znode: "/app", perms: noCreate}},
				after: func() error {
					if !s.present(stagePath) {
						return nil
					}
					site := s.voted(s.other, "1", recipes.VoteCommit)
					if began {
						s.ok(deciding(s.transaction(s.other, "").Coordinate, true)(s.ctx))
					} // otherwise the site counts its vote itself, because a session that does not know that it has begun the transaction gives up
					return s.finish(true, site)
				},
			}
		})
		for _, vote := range []recipes.Vote{recipes.VoteCommit, recipes.VoteAbort} {
			row("Transaction.Coordinate, all "+string(vote), func(s *stage) doing {
				tx := begun(s, s.victim, "1", "2")
				one, two := s.voted(s.other, "1", recipes.VoteCommit), s.voted(s.other, "2", vote)
				commit := vote == recipes.VoteCommit
				return doing{
					act:      deciding(tx.Coordinate, commit),
					happened: decision(s),
					denied:   []denial{{znode: stagePath, perms: noCreate}},
					deaths:   replaced(s, recipes.ErrNoTransaction, commit, one, two),
					after:    func() error { return s.finish(commit, one, two) },
				}
			})
			row("Transaction.Coordinate, waits to "+string(vote), func(s *stage) doing {
				tx := begun(s, s.victim, "1", "2")
				one, two := s.voted(s.other, "1", recipes.VoteCommit), must.Get(s.transaction(s.other, "").Join(s.ctx, "2"))(s.T)
				commit := vote == recipes.VoteCommit
				return doing{
					act:      deciding(tx.Coordinate, commit),
					happen:   func() error { return two.Vote(s.ctx, vote) },
					happened: decision(s),
					after:    func() error { return s.finish(commit, one, two) },
				}
			})
			row("Transaction.Coordinate, given up, "+string(vote), func(s *stage) doing { // after that, a site counts the votes
				tx := begun(s, s.victim, "1", "2")
				one, two := s.voted(s.other, "1", recipes.VoteCommit), must.Get(s.transaction(s.other, "").Join(s.ctx, "2"))(s.T)
				commit := vote == recipes.VoteCommit
				return doing{
					act:      givenUp(deciding(tx.Coordinate, commit), deciding(one.Wait, commit)),
					happen:   func() error { return two.Vote(s.ctx, vote) },
					happened: decision(s),
					after:    func() error { return s.finish(commit, one, two) },
				}
			})
			row("Site.Wait, and another counts, "+string(vote), func(s *stage) doing {
				tx := begun(s, s.other, "1", "2")
				mine := s.voted(s.victim, "1", recipes.VoteCommit)
				var theirs recipes.Site
				commit := vote == recipes.VoteCommit
				return doing{
					act: deciding(mine.Wait, commit),
					happen: func() error {
						theirs = s.voted(s.other, "2", vote)
						return sole(tx.Coordinate)(s.ctx)
					},
					happened: decision(s),
					harmless: true,
					after:    func() error { return s.finish(commit, mine, theirs) },
				}
			})
		}
		row("Site.Wait, and another aborts", func(s *stage) doing {
			tx := begun(s, s.other, "1", "2")
			mine := must.Get(s.transaction(s.victim, "").Join(s.ctx, "1"))(s.T)
			return doing{
				act:      deciding(mine.Wait, false),
				happen:   func() error { _, err := tx.Abort(s.ctx, "no"); return err },
				happened: decision(s),
				harmless: true,
			}
		})
		row("Transaction.Abort", func(s *stage) doing {
			tx := begun(s, s.victim, "1")
			return doing{
				act:      deciding(func(ctx context.Context) (recipes.Decision, error) { return tx.Abort(ctx, "no") }, false),
				happened: decision(s),
				denied:   []denial{{znode: stagePath, perms: noCreate}},
				after:    func() error { return s.finish(s.lost(), s.voted(s.other, "1", recipes.VoteCommit)) },
			}
		})
		row("Transaction.Join", func(s *stage) doing {
			tx := begun(s, s.other, "1", "2")
			theirs := s.voted(s.other, "2", recipes.VoteCommit)
			do := doing{
				act: func(ctx context.Context) error { _, err := s.transaction(s.victim, "").Join(ctx, "1"); return err },
				after: func() error {
					abort := sole(func(ctx context.Context) (recipes.Decision, error) { return tx.Abort(ctx, "no") })
					if s.lost() {
						return abort(s.ctx)
					}
					if s.present(stagePath+"/joined_1") && !s.present(stagePath+"/s_1") { // the call was cancelled, and the site is dead
						s.ok(abort(s.ctx))
						return s.finish(false, theirs, must.Get(s.transaction(s.other, "").Join(s.ctx, "1"))(s.T))
					}
					mine := s.voted(s.victim, "1", recipes.VoteCommit)
					return errors.Join(deciding(tx.Coordinate, true)(s.ctx), s.finish(true, mine, theirs))
				},
			}
			if v == recipes.OwnNodes {
				do.happened = func() bool { return s.present(stagePath + "/joined_1") }
				dead := func() bool { return s.present(stagePath+"/joined_1") && !s.present(stagePath+"/s_1") }
				do.act = givenUp(do.act, func(ctx context.Context) error {
					if dead() { // the next plugin has deleted the site's znode
						return nil
					}
					_, err := s.transaction(s.victim, "").Join(ctx, "1")
					return err
				})
				do.denied = []denial{{znode: stagePath, perms: noCreate}}
			}
			return do
		})
		row("Site.Vote", func(s *stage) doing {
			tx := begun(s, s.other, "1", "2")
			mine, theirs := must.Get(s.transaction(s.victim, "").Join(s.ctx, "1"))(s.T), s.voted(s.other, "2", recipes.VoteCommit)
			deleted := func() error { return s.remove(stagePath + "/s_1") }
			return doing{
				act:      func(ctx context.Context) error { return mine.Vote(ctx, recipes.VoteCommit) },
				happened: func() bool { return s.holds(stagePath+"/s_1", "commit") },
				denied:   []denial{{znode: stagePath + "/s_1", perms: noWrite}},
				between:  []meddling{{name: "its znode is deleted", at: zktest.Op(zkserver.OpMulti), do: deleted, want: recipes.ErrRemoved}},
				deaths:   []meddling{{name: "its znode is deleted", at: zktest.Op(zkserver.OpMulti), do: deleted, want: recipes.ErrNotHeld}},
				after: func() error {
					if s.lost() {
						s.ok(sole(func(ctx context.Context) (recipes.Decision, error) { return tx.Abort(ctx, "no") })(s.ctx))
					}
					return errors.Join(sole(tx.Coordinate)(s.ctx), s.finish(true, mine, theirs))
				},
			}
		})
		row("Site.Done", func(s *stage) doing {
			tx := begun(s, s.other, "1", "2")
			mine, theirs := s.voted(s.victim, "1", recipes.VoteCommit), s.voted(s.other, "2", recipes.VoteCommit)
			must.Get(tx.Coordinate(s.ctx))(s.T)
			return doing{
				act:      mine.Done,
				happened: func() bool { return s.present(stagePath + "/done_1") },
				denied:   []denial{{znode: stagePath + "/decision", perms: noRead}},
				harmless: true,
				after: func() error {
					if s.lost() {
						return s.finish(true, theirs, mine)
					}
					return s.finish(true, theirs)
				},
			}
		})
		row("Site.Done, the last", func(s *stage) doing {
			tx := begun(s, s.victim, "1")
			site := must.Get(tx.Join(s.ctx, "1"))(s.T)
			must.Get(tx.Abort(s.ctx, ""))(s.T)
			theirs, second := s.transaction(s.other, ""), zktest.Nth(2, zktest.Op(zkserver.OpMulti))
			forget := func() error { return theirs.Forget(s.ctx) }
			return doing{
				act:      site.Done,
				happened: func() bool { return !s.present(stagePath) },
				denied:   []denial{{znode: stagePath, perms: noCreate}, {znode: stagePath, perms: noDelete}},
				between: []meddling{
					{name: "a child comes before all are deleted", at: second, do: func() error { return zktest.BarrierAt(s.T, s.other, stagePath+"/new").Set(s.ctx, nil) }},
					{name: "a child goes before all are deleted", at: second, do: func() error { return s.removeLike("/decision") }},
					{name: "another deletes it", at: second, do: forget},
					{name: "another deletes it before it is listed", at: zktest.Op(zkserver.OpGetChildren2), do: forget},
				},
			}
		})
		if v != recipes.AllWatch {
			row("Site.Wait, a coordinator's place", func(s *stage) doing {
				begun(s, s.other, "1", "2")
				mine, theirs := s.voted(s.victim, "1", recipes.VoteCommit), s.voted(s.other, "2", recipes.VoteCommit)
				return doing{
					act:      deciding(mine.Wait, true),
					happen:   func() error { return s.remove(stagePath + "/coordinator") },
					happened: decision(s),
					harmless: true,
					after:    func() error { return s.finish(true, mine, theirs) },
				}
			})
			row("Site.Wait, a coordinator's place that is free", func(s *stage) doing {
				begun(s, s.other, "1", "2")
				mine, theirs := s.voted(s.victim, "1", recipes.VoteCommit), s.voted(s.other, "2", recipes.VoteCommit)
				s.ok(s.remove(stagePath + "/coordinator"))
				return doing{
					act:      deciding(mine.Wait, true),
					happened: decision(s),
					denied:   []denial{{znode: stagePath, perms: noCreate}},
					between:  []meddling{{name: "another takes it first", at: zktest.Op(zkserver.OpMulti), do: func() error { return sole(theirs.Wait)(s.ctx) }}},
					after:    func() error { return s.finish(true, mine, theirs) },
				}
			})
		}
	}
	// A site joins late, and the coordinator reads again which sites have joined. No site commits
	// without the votes of all, and no live site is taken for dead.
	for _, vote := range []recipes.Vote{recipes.VoteCommit, recipes.VoteAbort} {
		for _, waits := range []bool{false, true} { // whether the first site waits, so that it may become coordinator
			all = append(all, operation{fmt.Sprintf("Transaction.Coordinate, a site that joins late votes %s, the first waits %v", vote, waits), func(s *stage) doing {
				commit := vote == recipes.VoteCommit
				tx := s.transaction(s.victim, recipes.OwnNodes)
				s.ok(tx.Begin(s.ctx, nil, "1", "2"))
				first := s.voted(s.other, "1", recipes.VoteCommit)
				if waits {
					s.start(deciding(first.Wait, commit))
				}
				var second recipes.Site
				undecided := func(when string) {
					time.Sleep(time.Second) // virtual
					if n := s.node(stagePath + "/decision"); n != nil {
						s.Errorf("the second site has not %s, but the decision is %q", when, n.Data)
					}
				}
				return doing{
					act: deciding(tx.Coordinate, commit),
					happen: func() (err error) {
						undecided("joined")
						if second, err = s.transaction(s.other, "").Join(s.ctx, "2"); err != nil {
							return err
						}
						undecided("voted")
						return second.Vote(s.ctx, vote)
					},
					happened: decision(s),
					harmless: waits,
					after: func() error {
						s.started.Wait()
						if d, err := second.Wait(s.ctx); err != nil || strings.Contains(d.Reason, "died") {
							s.Errorf("decided %+v, %v", d, err)
						}
						return s.finish(commit, first, second)
					},
				}
			}})
		}
	}
	return append(all, operation{"Transaction.Coordinate, begun by another session", func(s *stage) doing {
		s.ok(s.transaction(s.other, recipes.AllWatch).Begin(s.ctx, nil, "1"))
		site := s.voted(s.other, "1", recipes.VoteCommit)
		return doing{
			act:      deciding(s.transaction(s.victim, "").Coordinate, true),
			happened: decision(s),
			deaths:   replaced(s, recipes.ErrUnknownOutcome, true, site),
			after:    func() error { return s.finish(true, site) },
		}
	}}, operation{"Transaction.Status", func(s *stage) doing {
		theirs := s.transaction(s.other, recipes.OwnNodes)
		s.ok(theirs.Begin(s.ctx, []byte("payload"), "1", "2", "3"))
		s.voted(s.other, "1", recipes.VoteCommit)
		s.voted(s.other, "2", recipes.VoteCommit)
		s.ok(s.remove(stagePath + "/s_2")) // the site dies
		must.Get(theirs.Abort(s.ctx, "why"))(s.T)
		return asking(s.transaction(s.victim, "").Status, func(status recipes.TransactionStatus) string {
			decision := status.Decision
			status.Decision = nil
			return fmt.Sprintf("%+v %+v", status, decision)
		})
	}}, operation{"Transaction.Coordinate, a site that joins, and dies", func(s *stage) doing {
		begins := s.transaction(s.other, recipes.OwnNodes)
		s.ok(begins.Begin(s.ctx, nil, "1"))
		return doing{
			act: deciding(s.transaction(s.victim, recipes.OwnNodes).Coordinate, false),
			happen: func() error {
				_, err := begins.Join(s.ctx, "1")
				return errors.Join(err, s.remove(stagePath+"/s_1"))
			},
			happened: decision(s),
		}
	}}, operation{"Transaction.Forget", func(s *stage) doing {
		tx, theirs := s.transaction(s.victim, ""), s.transaction(s.other, recipes.CoordinatorOnly)
		s.ok(tx.Begin(s.ctx, nil, "1"))
		must.Get(tx.Abort(s.ctx, ""))(s.T)
		s.ok(zktest.BarrierAt(s.T, s.other, stagePath+"/done_1").Set(s.ctx, nil)) // the transaction was decided, but its deletion failed halfway
		return doing{
			act:      tx.Forget,
			happened: func() bool { return !s.present(stagePath) },
			denied:   []denial{{znode: stagePath, perms: noDelete}},
			between: []meddling{{name: "another forgets it, and begins one", at: zktest.Op(zkserver.OpGetChildren2), do: func() error {
				return errors.Join(theirs.Forget(s.ctx), theirs.Begin(s.ctx, nil, "1"))
			}, then: func() {
				if _, err := theirs.Status(s.ctx); err != nil {
					s.Errorf("the other transaction: %v", err)
				}
			}}},
		}
	}}, operation{"Site.Wait, a decision", func(s *stage) doing {
		tx := s.transaction(s.victim, "")
		s.ok(tx.Begin(s.ctx, nil, "1"))
		site := must.Get(tx.Join(s.ctx, "1"))(s.T)
		must.Get(tx.Abort(s.ctx, ""))(s.T)
		return doing{
			act:      deciding(site.Wait, false),
			happened: decision(s),
			harmless: true,
			between: []meddling{{name: "it is deleted before it is read", at: zktest.Op(zkserver.OpGetData, "/decision"), do: func() error {
				return errors.Join(zktest.BarrierAt(s.T, s.other, stagePath+"/done_1").Set(s.ctx, nil), s.transaction(s.other, "").Forget(s.ctx))
			}, want: recipes.ErrNoTransaction}},
		}
	}}, operation{"Transaction.Coordinate, a listing", func(s *stage) doing {
		tx := s.transaction(s.victim, recipes.CoordinatorOnly)
		s.ok(tx.Begin(s.ctx, nil, "1"))
		s.voted(s.other, "1", recipes.VoteAbort)
		strange := func(child string, want error) meddling {
			return meddling{name: "another program writes " + child, at: zktest.Op(zkserver.OpGetChildren2), do: func() error {
				if !s.present(stagePath + child) {
					must.Get(s.transaction(s.other, "").Abort(s.ctx, ""))(s.T)
				}
				return s.write(stagePath+child, "{strange")
			}, want: want}
		}
		return doing{
			act: func(ctx context.Context) error {
				if _, err := s.victim.Contenders(ctx, stagePath); err != nil { // lists the path first
					return err
				}
				return sole(tx.Coordinate)(ctx)
			},
			happened: decision(s),
			between:  []meddling{strange("/s_1", recipes.ErrInvalid), strange("/protocol", recipes.ErrInvalid), strange("/decision", recipes.ErrNoTransaction)},
		}
	}})
}
