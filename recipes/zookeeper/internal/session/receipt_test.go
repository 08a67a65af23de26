package session_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// A path that is not used again leaves no receipt behind for long. A path in use keeps the same
// receipt.
func TestReceiptsThatAreIdleLongestAreDeleted(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	receipts := func(dir string) (found []string) {
		for _, n := range srv.Tree() {
			if strings.HasPrefix(n.Path, dir) && strings.Contains(n.Path, "receipt-") {
				found = append(found, n.Path)
			}
		}
		return found
	}
	commit := func(dir string) {
		var none session.Txn
		must.Get(s.CommitWithReceipt(t.Context(), dir, s.Ensure, none))(t)
	}
	commit("/once/busy")
	busy := receipts("/once/busy")
	const paths = session.IdleReceipts + 5
	for i := range paths {
		commit(fmt.Sprintf("/once/%d", i))
		commit("/once/busy")
	}
	patience, cancel := context.WithTimeout(t.Context(), watchdog.Patience)
	defer cancel()
	for len(receipts("/once/")) != session.IdleReceipts { // deletions run in the background
		if patience.Err() != nil {
			t.Fatalf("%d receipts; want %d", len(receipts("/once/")), session.IdleReceipts)
		}
		runtime.Gosched()
	}
	if got := receipts("/once/busy"); !slices.Equal(got, busy) {
		t.Errorf("the busy path has %q; want %q", got, busy)
	}
	for i, want := range map[int]int{0: 0, paths - 1: 1} {
		if got := receipts(fmt.Sprintf("/once/%d/", i)); len(got) != want {
			t.Errorf("path %d has %q; want %d", i, got, want)
		}
	}
	commit("/once/0") // a receipt that was deleted is created again
}

// Receipts of paths that are not used again do not use up the room for the session's ephemeral znodes.
func TestIdleReceiptsLeaveRoom(t *testing.T) {
	srv := embedded(t)
	cfg := to(srv)
	cfg.MaxPacket = 8 << 10
	s := open(t, cfg)
	for i := range 2 * session.IdleReceipts {
		var none session.Txn
		must.Get(s.CommitWithReceipt(t.Context(), fmt.Sprintf("/once/%d", i), s.Ensure, none))(t)
	}
}

func TestAReceiptThatAnotherClientDeletesIsReplaced(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	var create session.Txn
	create.CreateSequential("/once/receipts/e-", nil, false)
	for range 2 {
		outcome, err := s.CommitWithReceipt(t.Context(), "/once/receipts", s.Ensure, create)
		if err != nil || len(outcome.Created) != 1 {
			t.Fatal(outcome, err)
		}
		names := must.Get(s.Children(t.Context(), "/once/receipts"))(t)
		for _, n := range names {
			must.Do(t, <-s.Delete("/once/receipts/"+n))
		}
	}
}

// Another client writes the receipt before the transaction is sent. The refusal is not due to
// an earlier attempt, so the transaction must be sent again.
func TestAnotherClientsWriteOfAReceiptIsNotTheTransaction(t *testing.T) {
	srv := embedded(t)
	s, other := open(t, to(srv)), open(t, to(srv))
	ctx := t.Context()
	must.Do(t, s.Ensure(ctx, "/once"))
	written := false
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op == zkserver.OpMulti && r.SessionID == s.ID() && !written && strings.HasPrefix(r.Path, "/once/receipts/") {
			written = true
			var write session.Txn
			write.Set(r.Path, nil, recipes.AnyVersion)
			must.Report(t, other.Commit(ctx, write))
		}
		return zkserver.Fault{}
	})
	var create session.Txn
	create.Create("/once/done", nil, false)
	_, err := s.CommitWithReceipt(ctx, "/once/receipts", s.Ensure, create)
	if err != nil || !written {
		t.Errorf("%v; written by another client: %t", err, written)
	}
	if _, err := s.Get(ctx, "/once/done"); err != nil {
		t.Error(err)
	}
}

// The reply is lost, and another client deletes the receipt before the transaction is sent
// again. Its outcome is unknown then.
func TestALostReceiptLeavesTheOutcomeUnknown(t *testing.T) {
	for name, fault := range map[string]zkserver.Fault{"it has not happened": {CloseBefore: true}, "it has": {DropReply: true}} {
		t.Run(name, func(t *testing.T) {
			srv := embedded(t)
			s, other := open(t, to(srv)), open(t, to(srv))
			ctx := t.Context()
			must.Do(t, s.Ensure(ctx, "/once"))
			multis := 0
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				if r.Op != zkserver.OpMulti || r.SessionID != s.ID() || !strings.HasPrefix(r.Path, "/once/receipts/") {
					return zkserver.Fault{}
				}
				switch multis++; multis {
				case 1:
					return fault
				case 2:
					must.Report(t, other.DeleteOnce(ctx, r.Path, -1))
				}
				return zkserver.Fault{}
			})
			var create session.Txn
			create.CreateSequential("/once/e-", nil, false)
			if outcome, err := s.CommitWithReceipt(ctx, "/once/receipts", s.Ensure, create); !errors.Is(err, recipes.ErrUnknownOutcome) {
				t.Errorf("%+v, %v", outcome, err)
			}
			if multis != 2 {
				t.Errorf("sent %d times", multis)
			}
		})
	}
}

// The connection is lost with the transaction, and what it depends on has changed after the
// reconnect. The receipt shows whether the transaction has happened.
func TestAFailedReadAfterAnOutageDoesNotHideTheOutcome(t *testing.T) {
	failed := errors.New("not as it was")
	for _, test := range []struct {
		name    string
		fault   zkserver.Fault
		deleted bool // the receipt
		want    error
	}{
		{"it has not happened", zkserver.Fault{CloseBefore: true}, false, failed},
		{"it has happened", zkserver.Fault{DropReply: true}, false, nil},
		{"it cannot be known", zkserver.Fault{DropReply: true}, true, recipes.ErrUnknownOutcome},
	} {
		t.Run(test.name, func(t *testing.T) {
			srv := embedded(t)
			s, other := open(t, to(srv)), open(t, to(srv))
			ctx := t.Context()
			must.Do(t, s.Ensure(ctx, "/once"))
			receipt := make(chan string, 1)
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				if r.Op == zkserver.OpMulti && r.SessionID == s.ID() && strings.HasPrefix(r.Path, "/once/receipts/") {
					receipt <- r.Path
					return test.fault
				}
				return zkserver.Fault{}
			})
			reads := 0
			outcome, err := s.CommitRead(ctx, "/once/receipts", s.Ensure, func(context.Context) (t session.Txn, err error) {
				if reads++; reads > 2 { // the second read comes after the creation of the receipt
					err = failed
					if test.deleted {
						err = errors.Join(err, other.DeleteOnce(ctx, <-receipt, -1))
					}
				}
				t.Create("/once/done", nil, false)
				return t, err
			})
			if !errors.Is(err, test.want) || errors.Is(err, failed) != (test.want == failed) || reads != 3 {
				t.Errorf("%v after %d reads; want %v", err, reads, test.want)
			}
			node, noNode := s.Get(ctx, "/once/done")
			if errors.Is(noNode, recipes.ErrNoNode) != (test.want == failed) || node.Stat.Czxid != outcome.Zxid && test.want == nil {
				t.Errorf("created at %d, %v; the outcome says %d", node.Stat.Czxid, noNode, outcome.Zxid)
			}
		})
	}
}

// However a transaction ends, its receipt is used by the next one, or deleted if its version is
// unknown.
func TestAReceiptServesTheNextOrIsDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		fault   zkserver.Fault // of the transaction
		gone    bool           // the caller gives up while it is in flight
		down    bool           // the caller gives up while there is no connection on which to repeat it
		again   zkserver.Fault // of its repetition
		refused bool           // refused because of one of its own operations
		want    error
		deleted bool
	}{
		"done":                          {},
		"refused":                       {refused: true, want: recipes.ErrNoNode},
		"throttled":                     {fault: zkserver.Fault{Throttle: true}, want: recipes.ErrThrottled},
		"reply lost":                    {fault: zkserver.Fault{DropReply: true}},
		"request lost":                  {fault: zkserver.Fault{CloseBefore: true}},
		"lost twice":                    {fault: zkserver.Fault{CloseBefore: true}, again: zkserver.Fault{DropReply: true}},
		"request lost, refused":         {fault: zkserver.Fault{CloseBefore: true}, refused: true, want: recipes.ErrNoNode},
		"request lost, then throttled":  {fault: zkserver.Fault{CloseBefore: true}, again: zkserver.Fault{Throttle: true}},
		"reply lost, then throttled":    {fault: zkserver.Fault{DropReply: true}, again: zkserver.Fault{Throttle: true}},
		"the caller gives up in flight": {gone: true, want: recipes.ErrUnknownOutcome, deleted: true},
		"lost, and no connection":       {fault: zkserver.Fault{CloseBefore: true}, down: true, want: recipes.ErrUnknownOutcome, deleted: true},
		"lost, and the caller gives up": {fault: zkserver.Fault{CloseBefore: true}, gone: true, want: recipes.ErrUnknownOutcome, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, ctx := embedded(t), zktest.Bounded(t)
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
				_, err := s.CommitWithReceipt(ctx, "/once/receipts", s.Ensure, create)
				return err
			}
			must.Do(t, errors.Join(s.Ensure(ctx, "/once"), commit(ctx, false)))
			before := receipts()
			patience, cancel := context.WithCancel(ctx)
			defer cancel()
			proceed := make(chan struct{})
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
				srv.RefuseConnections(test.down)
				if test.gone && n == last {
					cancel()
					return zkserver.Fault{Hold: proceed}
				}
				return [3]zkserver.Fault{1: test.fault, 2: test.again}[n%3]
			})
			if lost := must.Get(s.Connected(ctx))(t); test.down {
				go func() { <-lost; cancel() }()
			}
			if err := commit(patience, test.refused); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			close(proceed)
			srv.SetFault(nil)
			srv.RefuseConnections(false)
			must.Do(t, commit(ctx, false))
			for test.deleted && slices.Contains(receipts(), before[0]) && ctx.Err() == nil { // deleted in the background
				runtime.Gosched()
			}
			if after := receipts(); len(after) != 1 || (after[0] == before[0]) == test.deleted {
				t.Errorf("receipts %q; before %q", after, before)
			}
		})
	}
}
