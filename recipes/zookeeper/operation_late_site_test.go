package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// A site joins late, and the coordinator reads again which sites have joined. Each request of
// the coordinator may fail. Still no site commits without the votes of all sites, and the
// coordinator takes no live site for dead.
func TestALateSiteIsWaitedForThoughTheCoordinatorMeetsFaults(t *testing.T) {
	var cases atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for _, vote := range []recipes.Vote{recipes.VoteCommit, recipes.VoteAbort} {
			for _, waits := range []bool{false, true} {
				t.Run(fmt.Sprintf("it votes %s, another waits: %v", vote, waits), func(t *testing.T) {
					t.Parallel()
					sweep(t, &cases, func(t *testing.T, f fault, at int64) int64 {
						if f.expires() {
							return 0
						}
						return lateSite(t, f, at, vote, waits)
					})
				})
			}
		}
	})
	fmt.Printf("coordinators: %d cases\n", cases.Load())
}

// lateSite has the victim coordinate two sites of the other session. The second site joins
// when the coordinator waits, and votes when the coordinator waits again. With waits, the
// first site waits for the decision all the time, and may become coordinator.
func lateSite(t *testing.T, f fault, at int64, vote recipes.Vote, waits bool) (requests int64) {
	onStage(t, func(s *stage) {
		tx := s.transaction(s.victim, recipes.OwnNodes)
		s.ok(tx.Begin(s.ctx, nil, "1", "2"))
		first := s.voted(s.other, "1", recipes.VoteCommit)
		told := make(chan recipes.Decision, 2)
		if waits {
			go func() {
				d, err := first.Wait(s.ctx)
				if err != nil {
					s.Errorf("the first site: %v", err)
				}
				told <- d
			}()
		}
		calm()

		acting, cancel := context.WithCancel(s.ctx)
		defer cancel()
		sent := f.strike(s.srv, s.victim, at, cancel)
		var second recipes.Site
		err := s.acts(acting, func(ctx context.Context) error {
			d, err := tx.Coordinate(ctx)
			if err == nil {
				told <- d
			}
			return err
		}, func() (err error) {
			undecided := func(when string) {
				calm()
				if n := s.node(stagePath + "/decision"); n != nil {
					s.Errorf("the second site has not %s, but the decision is %q", when, n.Data)
				}
			}
			undecided("joined")
			if second, err = s.transaction(s.other, "").Join(s.ctx, "2"); err != nil {
				return err
			}
			undecided("voted")
			return second.Vote(s.ctx, vote)
		})
		calm()
		requests = sent.Load()
		s.srv.SetFault(nil)
		cancel()
		if !f.allows(err) && (f.answered() || !errors.Is(err, recipes.ErrUnknownOutcome)) {
			s.Errorf("the coordinator returns %v", err)
		}
		again, err := tx.Coordinate(s.ctx)
		if err != nil || again.Commit != (vote == recipes.VoteCommit) || strings.Contains(again.Reason, "died") {
			s.Errorf("asked again: %+v, %v", again, err)
		}
		calm()
		for range len(told) {
			if d := <-told; d != again {
				s.Errorf("two decisions: %+v and %+v", d, again)
			}
		}
		for _, site := range []recipes.Site{first, second} {
			s.fails("done", site.Done(s.ctx))
		}
		if s.present(stagePath) {
			s.Error("all sites are done, but the transaction still exists")
		}
	})
	return requests
}
