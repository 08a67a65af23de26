package zookeeper_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Another program keeps something below the transaction, which cannot be deleted
// with it: whoever is the last is told so, once his word is known.
func TestATransactionThatAnotherKeepsSomethingBelow(t *testing.T) {
	onBoth(t, func(s *scene) {
		session := s.session()
		tx := must[recipes.Transaction](s.T)(session.Transaction(s.path, recipes.TransactionConfig{}))
		if err := tx.Begin(s.ctx, nil, "1"); err != nil {
			s.Fatal(err)
		}
		for _, path := range []string{s.path + "/strange", s.path + "/strange/child"} {
			if _, err := s.raw.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				s.Fatal(err)
			}
		}
		site := must[recipes.Site](s.T)(tx.Join(s.ctx, "1"))
		must[recipes.Decision](s.T)(tx.Abort(s.ctx, ""))
		for _, end := range []func(context.Context) error{site.Done, tx.Forget} {
			if err := end(s.ctx); !errors.Is(err, recipes.ErrNotEmpty) {
				s.Error(err)
			}
		}
		if err := s.raw.Delete(s.path+"/strange/child", -1); err != nil {
			s.Fatal(err)
		}
		before := must[recipes.Stats](s.T)(session.Stats(s.ctx)).ByKind["sync"]
		if err := tx.Forget(s.ctx); err != nil || s.exists(s.path) {
			s.Errorf("then forgotten: %v", err)
		}
		if n := must[recipes.Stats](s.T)(session.Stats(s.ctx)).ByKind["sync"] - before; n != 0 {
			s.Errorf("all sites are done, and it asked the leader %d times", n)
		}
	})
}

// Another program deletes a site's znode, or takes away the right to write it: the vote
// is refused, and each for its reason.
func TestAVoteThatAnotherProgramPrevents(t *testing.T) {
	for _, variant := range recipes.Variants() {
		for what, prevent := range map[error]func(raw *zk.Conn, znode string) error{
			recipes.ErrRemoved: func(raw *zk.Conn, znode string) error { return raw.Delete(znode, -1) },
			recipes.ErrAccessDenied: func(raw *zk.Conn, znode string) error {
				_, err := raw.SetACL(znode, zk.WorldACL(zk.PermRead), -1)
				return err
			},
		} {
			onBoth(t, func(s *scene) {
				tx := must[recipes.Transaction](s.T)(s.session().Transaction(s.path, recipes.TransactionConfig{Variant: variant}))
				if err := tx.Begin(s.ctx, nil, "1", "2"); err != nil {
					s.Fatal(err)
				}
				site := must[recipes.Site](s.T)(tx.Join(s.ctx, "1"))
				if err := prevent(s.raw, s.path+"/s_1"); err != nil {
					s.Fatal(err)
				}
				err := site.Vote(s.ctx, recipes.VoteCommit)
				if !errors.Is(err, what) || errors.Is(err, recipes.ErrNotHeld) != (what == recipes.ErrRemoved) {
					s.Errorf("%s: the vote: %v; want %v", variant, err, what)
				}
			})
		}
	}
}
