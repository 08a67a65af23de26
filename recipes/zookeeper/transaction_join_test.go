package zookeeper_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The last site joins between the coordinator's look at who has joined and the
// one that arms the watch for who has not.
func TestTheLastSiteJoinsBeforeItIsWatchedFor(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		coordinator := s.session()
		transaction := func(session recipes.Session) recipes.Transaction {
			return must[recipes.Transaction](t)(session.Transaction(s.path, recipes.TransactionConfig{Variant: recipes.OwnNodes}))
		}
		tx := transaction(coordinator)
		if err := tx.Begin(s.ctx, nil, "1"); err != nil {
			t.Fatal(err)
		}
		joins, listings := transaction(s.session()), 0
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID != coordinator.ID() || r.Op != zkserver.OpGetChildren2 {
				return zkserver.Fault{}
			}
			if listings++; listings == 2 {
				site, err := joins.Join(s.ctx, "1")
				if err == nil {
					err = site.Vote(s.ctx, recipes.VoteCommit)
				}
				if err != nil {
					t.Error(err)
				}
			}
			return zkserver.Fault{}
		})
		d, err := tx.Coordinate(s.ctx)
		if err != nil || !d.Commit {
			t.Errorf("%+v, %v", d, err)
		}
		if listings < 2 {
			t.Error("the case was not met")
		}
	})
}
