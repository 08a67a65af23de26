package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// transaction is the one at latePath.
func (l *late) transaction(s recipes.Session, v recipes.Variant) recipes.Transaction {
	return must[recipes.Transaction](l.T)(s.Transaction(latePath, recipes.TransactionConfig{Variant: v}))
}

// voted has sites of the session join and vote to commit.
func (l *late) voted(ctx context.Context, s recipes.Session, names ...string) (sites []recipes.Site) {
	for _, name := range names {
		site := must[recipes.Site](l.T)(l.transaction(s, "").Join(ctx, name))
		if err := site.Vote(ctx, recipes.VoteCommit); err != nil {
			l.Fatal(err)
		}
		sites = append(sites, site)
	}
	return sites
}

// committed is an error unless the decision is to commit.
func committed(d recipes.Decision, err error) error {
	if err == nil && !d.Commit {
		err = fmt.Errorf("decided %+v", d)
	}
	return err
}

// disturbedTransactions are those that count votes, wait, and finish.
func disturbedTransactions() (all []deed) {
	for _, v := range recipes.Variants() {
		// begun is a transaction of the session, and two sites of the other.
		begun := func(l *late, ctx context.Context, s recipes.Session, names ...string) recipes.Transaction {
			tx := l.transaction(s, v)
			if err := tx.Begin(ctx, []byte("payload"), names...); err != nil {
				l.Fatal(err)
			}
			return tx
		}
		// finish has all sites wait, who are told to commit, whoever counts, and act on it.
		finish := func(l *late, ctx context.Context, sites ...recipes.Site) error {
			for _, site := range sites {
				if err := errors.Join(committed(site.Wait(ctx)), site.Done(ctx)); err != nil {
					return err
				}
			}
			if l.present(latePath) {
				return errors.New("all are done, and the transaction is there")
			}
			return nil
		}
		all = append(all,
			deed{"count votes, " + string(v), func(l *late, ctx context.Context) doing {
				tx := begun(l, ctx, l.victim, "1", "2")
				sites := l.voted(ctx, l.other, "1", "2")
				return doing{
					act:      func(acting context.Context) error { return committed(tx.Coordinate(acting)) },
					happened: func() bool { return l.present(latePath + "/decision") },
					after:    func() error { return finish(l, ctx, sites...) },
				}
			}},
			deed{"wait for votes, " + string(v), func(l *late, ctx context.Context) doing {
				tx := begun(l, ctx, l.victim, "1", "2")
				sites := l.voted(ctx, l.other, "1")
				return doing{
					act: func(acting context.Context) error {
						return whileWaiting(func() error { return committed(tx.Coordinate(acting)) }, func() error {
							if len(sites) == 1 {
								sites = append(sites, l.voted(ctx, l.other, "2")...)
							}
							return nil
						})
					},
					happened: func() bool { return l.present(latePath + "/decision") },
					after:    func() error { return finish(l, ctx, sites...) },
				}
			}},
			deed{"wait for a decision, " + string(v), func(l *late, ctx context.Context) doing {
				tx := begun(l, ctx, l.other, "1", "2")
				mine := l.voted(ctx, l.victim, "1")[0]
				var theirs recipes.Site
				return doing{
					act: func(acting context.Context) error {
						return whileWaiting(func() error { return committed(mine.Wait(acting)) }, func() error {
							if theirs != nil {
								return nil
							}
							theirs = l.voted(ctx, l.other, "2")[0]
							return committed(tx.Coordinate(ctx))
						})
					},
					happened: func() bool { return l.present(latePath + "/decision") },
					harmless: true,
					after:    func() error { return finish(l, ctx, mine, theirs) },
				}
			}},
			deed{"do what was decided, " + string(v), func(l *late, ctx context.Context) doing {
				tx := begun(l, ctx, l.other, "1", "2")
				mine, theirs := l.voted(ctx, l.victim, "1")[0], l.voted(ctx, l.other, "2")[0]
				must[recipes.Decision](l.T)(tx.Coordinate(ctx))
				return doing{
					act:      mine.Done,
					happened: func() bool { return l.present(latePath + "/done_1") },
					harmless: true,
					after:    func() error { return finish(l, ctx, theirs) },
				}
			}},
			deed{"join, " + string(v), func(l *late, ctx context.Context) doing {
				tx := begun(l, ctx, l.other, "1", "2")
				theirs := l.voted(ctx, l.other, "2")[0]
				do := doing{
					act: func(acting context.Context) error {
						_, err := l.transaction(l.victim, "").Join(acting, "1")
						return err
					},
					after: func() error {
						mine := l.voted(ctx, l.victim, "1")[0]
						return errors.Join(committed(tx.Coordinate(ctx)), finish(l, ctx, mine, theirs))
					},
				}
				if v == recipes.OwnNodes {
					do.happened = func() bool { return l.present(latePath + "/s_1") }
				}
				return do
			}},
		)
	}
	return append(all, deed{"forget a transaction", func(l *late, ctx context.Context) doing {
		tx := l.transaction(l.victim, "")
		if err := tx.Begin(ctx, nil, "1"); err != nil {
			l.Fatal(err)
		}
		must[recipes.Decision](l.T)(tx.Abort(ctx, ""))
		if err := barrierAt(l.T, l.other, latePath+"/done_1").Set(ctx, nil); err != nil { // it has died halfway
			l.Fatal(err)
		}
		return doing{act: tx.Forget, happened: func() bool { return !l.present(latePath) }}
	}})
}

// A site joins late, and the coordinator looks again at who has joined. Each of its
// requests may fail: still nobody commits without the votes of all sites, and no site that
// lives is taken for dead.
func TestALateSiteIsWaitedForThoughTheCoordinatorIsDisturbed(t *testing.T) {
	var cases atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for _, vote := range []recipes.Vote{recipes.VoteCommit, recipes.VoteAbort} {
			for _, waits := range []bool{false, true} {
				t.Run(fmt.Sprintf("it votes %s, another waits: %v", vote, waits), func(t *testing.T) {
					t.Parallel()
					disturb(t, &cases, func(t *testing.T, d disturbance, at int64) int64 {
						return lateSite(t, d, at, vote, waits)
					})
				})
			}
		}
	})
	fmt.Printf("disturbed coordinators: %d cases\n", cases.Load())
}

// lateSite has the victim coordinate two sites of the other session. The second one joins
// when the coordinator waits, and votes when it waits again. With waits the first one waits
// for the decision all the time: it may become coordinator.
func lateSite(t *testing.T, d disturbance, at int64, vote recipes.Vote, waits bool) (requests int64) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		t.Cleanup(func() { srv.Close() })
		ctx, end := context.WithTimeout(t.Context(), patience)
		t.Cleanup(end)
		l := &late{T: t, srv: srv, victim: openVirtual(t, srv), other: openVirtual(t, srv)}
		tx := l.transaction(l.victim, recipes.OwnNodes)
		if err := tx.Begin(ctx, nil, "1", "2"); err != nil {
			t.Fatal(err)
		}
		first := l.voted(ctx, l.other, "1")[0]
		told := make(chan recipes.Decision, 2)
		if waits {
			go func() {
				d, err := first.Wait(ctx)
				if err != nil {
					t.Errorf("the first site: %v", err)
				}
				told <- d
			}()
		}
		calm()

		acting, cancel := context.WithCancel(ctx)
		defer cancel()
		sent := d.strike(srv, l.victim, at, cancel)
		var second recipes.Site
		err := whileWaiting(func() error {
			d, err := tx.Coordinate(acting)
			if err == nil {
				told <- d
			}
			return err
		}, func() (err error) {
			undecided := func(when string) {
				calm()
				if data, decided := l.data(latePath + "/decision"); decided {
					t.Errorf("the second site has not %s, and the decision is %q", when, strings.TrimSpace(data))
				}
			}
			undecided("joined")
			if second, err = l.transaction(l.other, "").Join(ctx, "2"); err != nil {
				return err
			}
			undecided("voted")
			return second.Vote(ctx, vote)
		})
		calm()
		requests = sent.Load()
		srv.SetFault(nil)
		cancel()
		if err != nil && (at == 0 || !d.may(err)) {
			t.Errorf("the coordinator is told %v", err)
		}
		again, err := tx.Coordinate(ctx)
		if err != nil || again.Commit != (vote == recipes.VoteCommit) || strings.Contains(again.Reason, "died") {
			t.Errorf("asked again: %+v, %v", again, err)
		}
		calm()
		for range len(told) {
			if d := <-told; d != again {
				t.Errorf("one was told %+v, and another %+v", d, again)
			}
		}
		for _, site := range []recipes.Site{first, second} {
			if err := site.Done(ctx); err != nil {
				t.Error(err)
			}
		}
		if l.present(latePath) {
			t.Error("all are done, and the transaction is there")
		}
	})
	return requests
}
