package session_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// However a transaction ends, its receipt serves the next one, or is deleted where its
// version is not known any more.
func TestAReceiptServesTheNextOrIsDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		fault   zkserver.Fault // of the transaction
		gone    bool           // the caller goes while it is under way
		again   zkserver.Fault // of its repetition
		refused bool           // by one of its own operations
		want    error
		deleted bool
	}{
		"done":                           {},
		"refused":                        {refused: true, want: recipes.ErrNoNode},
		"throttled":                      {fault: zkserver.Fault{Throttle: true}, want: recipes.ErrThrottled},
		"reply lost":                     {fault: zkserver.Fault{DropReply: true}},
		"request lost":                   {fault: zkserver.Fault{CloseBefore: true}},
		"lost twice":                     {fault: zkserver.Fault{CloseBefore: true}, again: zkserver.Fault{DropReply: true}},
		"request lost, refused":          {fault: zkserver.Fault{CloseBefore: true}, refused: true, want: recipes.ErrNoNode},
		"request lost, then throttled":   {fault: zkserver.Fault{CloseBefore: true}, again: zkserver.Fault{Throttle: true}},
		"reply lost, then throttled":     {fault: zkserver.Fault{DropReply: true}, again: zkserver.Fault{Throttle: true}},
		"the caller goes while it waits": {gone: true, want: recipes.ErrUnknownOutcome, deleted: true},
		"lost, and then the caller goes": {fault: zkserver.Fault{CloseBefore: true}, gone: true, want: recipes.ErrUnknownOutcome, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, ctx := embedded(t), bounded(t)
			s := open(t, to(srv))
			receipts := func() (found []string) {
				for _, n := range srv.Tree() {
					if strings.Contains(n.Path, "receipt-") {
						found = append(found, n.Path)
					}
				}
				return found
			}
			commit := func(ctx context.Context, refused bool) error {
				var create session.Txn
				if create.CreateSequential("/once/e-", nil, false); refused {
					create.Delete("/once/none", recipes.AnyVersion)
				}
				_, err := s.CommitOnce(ctx, "/once/receipts", s.Ensure, create)
				return err
			}
			if err := errors.Join(s.Ensure(ctx, "/once"), commit(ctx, false)); err != nil {
				t.Fatal(err)
			}
			before := receipts()
			patience, cancel := context.WithCancel(ctx)
			defer cancel()
			goOn := make(chan struct{})
			var multis atomic.Int64
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				if r.Op != zkserver.OpMulti {
					return zkserver.Fault{}
				}
				last := int64(1)
				if test.fault.CloseBefore || test.fault.DropReply {
					last = 2
				}
				n := multis.Add(1)
				if test.gone && n == last {
					cancel()
					return zkserver.Fault{Hold: goOn}
				}
				return [3]zkserver.Fault{1: test.fault, 2: test.again}[n%3]
			})
			if err := commit(patience, test.refused); !errors.Is(err, test.want) {
				t.Errorf("told %v, want %v", err, test.want)
			}
			close(goOn)
			srv.SetFault(nil)
			if err := commit(ctx, false); err != nil {
				t.Fatal(err)
			}
			for test.deleted && slices.Contains(receipts(), before[0]) && ctx.Err() == nil { // in the background
				runtime.Gosched()
			}
			if after := receipts(); len(after) != 1 || (after[0] == before[0]) == test.deleted {
				t.Errorf("receipts %q; before %q", after, before)
			}
		})
	}
}

// The caller goes while there is no connection on which the transaction could be repeated.
func TestAReceiptIsDeletedWhenItsCallerGoesWithoutAConnection(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	patience, cancel := context.WithCancel(ctx)
	defer cancel()
	var dials atomic.Int64
	s, err := session.Open(ctx, to(srv), func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) == 2 {
			cancel()
			return nil, errors.New("not today")
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(s) })
	var none session.Txn
	if _, err := s.CommitOnce(ctx, "/once/receipts", s.Ensure, none); err != nil {
		t.Fatal(err)
	}
	at(srv, zkserver.OpMulti, faultOf(zkserver.Fault{CloseBefore: true}))
	if _, err := s.CommitOnce(patience, "/once/receipts", s.Ensure, none); !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Errorf("told %v", err)
	}
	for {
		names, err := s.Children(ctx, "/once/receipts")
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 {
			return
		}
	}
}
