package zookeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Another program keeps something below the transaction, which cannot be deleted
// with it: whoever is the last is told so, once his word is known.
func TestATransactionThatAnotherKeepsSomethingBelow(t *testing.T) {
	onBoth(t, func(s *scene) {
		tx := must[recipes.Transaction](s.T)(s.session().Transaction(s.path, recipes.TransactionConfig{}))
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
		ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
		defer cancel()
		for _, end := range []func(context.Context) error{site.Done, tx.Forget} {
			if err := end(ctx); !errors.Is(err, recipes.ErrNotEmpty) {
				s.Error(err)
			}
		}
		if err := s.raw.Delete(s.path+"/strange/child", -1); err != nil {
			s.Fatal(err)
		}
		if err := tx.Forget(s.ctx); err != nil || s.exists(s.path) {
			s.Errorf("then forgotten: %v", err)
		}
	})
}
