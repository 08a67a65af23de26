package session_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Whatever becomes of the replies, a transaction happens once, and it is known
// that it was this session's.
func TestCommitOnceHappensOnceThoughRepliesAreLost(t *testing.T) {
	for name, fault := range map[string]zkserver.Fault{
		"nothing goes wrong":                 {},
		"connection lost before":             {CloseBefore: true},
		"reply lost after the commit":        {DropReply: true},
		"connection lost just after a reply": {CloseAfter: true},
	} {
		t.Run(name, func(t *testing.T) {
			srv := embedded(t)
			s := open(t, to(srv))
			ctx := t.Context()
			if err := s.Ensure(ctx, "/once"); err != nil {
				t.Fatal(err)
			}
			var multis atomic.Int32
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				if r.Op == zkserver.OpMulti && multis.Add(1) == 1 {
					return fault
				}
				return zkserver.Fault{}
			})
			var create session.Txn
			create.CreateSequential("/once/e-", []byte("x"), false)
			outcome, err := s.CommitOnce(ctx, "/once/receipts", s.Ensure, create)
			if err != nil {
				t.Fatal(err)
			}
			names, err := s.Children(ctx, "/once")
			if err != nil {
				t.Fatal(err)
			}
			names = slices.DeleteFunc(names, func(n string) bool { return n == "receipts" })
			if len(names) != 1 {
				t.Fatalf("children %q; want one", names)
			}
			node, err := s.Get(ctx, "/once/"+names[0])
			if err != nil || node.Stat.Czxid != outcome.Zxid {
				t.Errorf("created at %d, %v; the outcome says %d", node.Stat.Czxid, err, outcome.Zxid)
			}
			// A refusal is told by its place, and the receipt serves again.
			var refused *session.TxnError
			var del session.Txn
			del.Check("/once", recipes.AnyVersion)
			del.Delete("/once/none", recipes.AnyVersion)
			if _, err := s.CommitOnce(ctx, "/once/receipts", s.Ensure, del); !errors.As(err, &refused) || refused.Index != 1 || !errors.Is(err, recipes.ErrNoNode) {
				t.Errorf("refused with %v", err)
			}
			if receipts, _ := s.Children(ctx, "/once/receipts"); len(receipts) != 1 {
				t.Errorf("receipts %q; want one", receipts)
			}
		})
	}
}

func TestAReceiptThatAnotherHandDeletesIsReplaced(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	var create session.Txn
	create.CreateSequential("/once/receipts/e-", nil, false)
	for range 2 {
		outcome, err := s.CommitOnce(t.Context(), "/once/receipts", s.Ensure, create)
		if err != nil || len(outcome.Created) != 1 {
			t.Fatal(outcome, err)
		}
		names, err := s.Children(t.Context(), "/once/receipts")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if err := <-s.Delete("/once/receipts/" + n); err != nil {
				t.Fatal(err)
			}
		}
	}
}
