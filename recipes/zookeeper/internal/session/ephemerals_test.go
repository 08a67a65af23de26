package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// The smallest packet, and how many bytes of paths docs/operating.md allows with it.
const (
	smallPacket = 4 << 10
	smallLimit  = smallPacket * 15 / 16
)

// creations are the ways to create an ephemeral znode below /x.
var creations = map[string]func(context.Context, *session.Session, int) error{
	"bare": func(ctx context.Context, s *session.Session, _ int) error {
		_, _, err := s.CreateBare(ctx, "/x", "lock-", nil, false, s.EnsureQueuePath)
		return err
	},
	"protected": func(ctx context.Context, s *session.Session, _ int) error {
		_, err := s.CreateProtected(ctx, "/x", "lock-", nil)
		return err
	},
	"named": func(ctx context.Context, s *session.Session, n int) error {
		_, err := s.CreateNamed(ctx, fmt.Sprintf("/x/named-%d", n), nil)
		return err
	},
	"in a transaction": func(ctx context.Context, s *session.Session, n int) error {
		var t session.Txn
		t.Create(fmt.Sprintf("/x/by-transaction-%d", n), nil, true)
		return s.Commit(ctx, t)
	},
}

// transactionBytes is what the paths of the session take in the transaction that closes it.
func transactionBytes(t *testing.T, srv *zkserver.Server) (bytes int) {
	t.Helper()
	s := open(t, to(srv))
	for _, name := range must.Get(s.Children(zktest.Bounded(t), "/x"))(t) {
		bytes += 4 + len("/x/") + len(name)
	}
	return bytes
}

// The paths of a session's ephemeral znodes fit into one transaction, whichever way they are created
// and however many at once. The refused creation leaves nothing, and there is room again when one
// is deleted.
func TestEphemeralPathsFitIntoOneTransaction(t *testing.T) {
	for name, create := range creations {
		t.Run(name, func(t *testing.T) {
			srv, ctx := embedded(t), zktest.Bounded(t)
			cfg := to(srv)
			cfg.MaxPacket = smallPacket
			s := open(t, cfg)
			must.Do(t, s.Provide(ctx, "/x"))
			var refused atomic.Pointer[error]
			var made atomic.Int32
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for refused.Load() == nil {
						if err := create(ctx, s, int(made.Add(1))); err != nil {
							refused.Store(&err)
						}
					}
				})
			}
			all.Wait()
			if err := *refused.Load(); !errors.Is(err, recipes.ErrTooLarge) {
				t.Fatal(err)
			}
			limit := smallLimit
			if name == "in a transaction" {
				limit = smallPacket
			}
			if has := transactionBytes(t, srv); has > limit {
				t.Errorf("eight at once have created %d bytes of paths; the limit is %d", has, limit)
			}
			var err error
			for n := 1_000_000; err == nil; n++ { // a creation that is in flight during a count is counted twice
				err = create(ctx, s, n)
			}
			if has := transactionBytes(t, srv); !errors.Is(err, recipes.ErrTooLarge) || has > limit || has < limit-640 {
				t.Errorf("%d bytes of paths; the limit is %d: %v", has, limit, err)
			}
			for _, child := range must.Get(s.Children(ctx, "/x"))(t)[:20] {
				must.Do(t, <-s.Delete("/x/"+child))
			}
			must.Do(t, create(ctx, s, 2_000_000))
		})
	}
}

// A session that creates and deletes without end asks the server only when it has created as many
// bytes as fit.
func TestDeletedPathsTakeNoRoom(t *testing.T) {
	srv := embedded(t)
	cfg := to(srv)
	cfg.MaxPacket = smallPacket
	s := open(t, cfg)
	const n = 1000
	for range n {
		must.Report(t, <-s.DeleteBare(bare(t, s, "/x")))
	}
	if counts := srv.Counters().Requests[zkserver.OpGetEphemerals]; counts < 1 || counts > n*30/smallLimit+1 {
		t.Errorf("%d creations asked %d times", n, counts)
	}
}

// A resumed session does not know what it has, and asks before it creates.
func TestAResumedSessionCountsWhatItHas(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	cfg := to(srv)
	cfg.MaxPacket = smallPacket
	first := must.Get(session.Open(ctx, cfg, nil))(t)
	for creations["bare"](ctx, first, 0) == nil {
	}
	before := transactionBytes(t, srv)
	ticket := must.Get(first.LetGo(ctx))(t)
	s := must.Get(session.Resume(ctx, cfg, nil, ticket))(t)
	defer closeNow(s)
	if err := creations["bare"](ctx, s, 0); !errors.Is(err, recipes.ErrTooLarge) {
		t.Errorf("the resumed session had %d bytes, and created more: %v", before, err)
	}
}

// Before 3.6, the transaction has no paths, and servers cannot be asked. A server that is not
// ZooKeeper may end the connection instead of an answer. The session continues without a limit. A
// connection that ends by chance changes nothing.
func TestPathsAreNotCountedWhereThatIsImpossible(t *testing.T) {
	for _, tt := range []struct {
		name      string
		like      zkserver.Release
		closes    int
		unlimited bool
	}{{"3.4", zkserver.Release34, 0, true}, {"closes", 0, 1000, true}, {"by chance", 0, 1, false}} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := zktest.Bounded(t)
			srv := must.Get(zkserver.Listen(zkserver.Config{Like: tt.like}))(t)
			defer srv.Close()
			closes := atomic.Int32{}
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				return zkserver.Fault{CloseBefore: r.Op == zkserver.OpGetEphemerals && closes.Add(1) <= int32(tt.closes)}
			})
			cfg := to(srv)
			cfg.MaxPacket, cfg.SessionTimeout = smallPacket, 30*time.Second
			s := open(t, cfg)
			var err error
			for n := 0; n < 2*smallLimit/30 && err == nil; n++ {
				err = creations["protected"](ctx, s, n)
			}
			if tt.unlimited && err != nil || !tt.unlimited && !errors.Is(err, recipes.ErrTooLarge) {
				t.Error(err)
			}
			if n := s.Counters().Reconnects; n > 3 {
				t.Errorf("%d reconnects", n)
			}
		})
	}
}
