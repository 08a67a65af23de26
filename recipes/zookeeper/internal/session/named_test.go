package session_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// CreateNamed recognizes its own znode by owner and age, and returns what another client does
// to it before the owner reads it.
func TestCreateNamedWhileAnotherClientChangesTheZnode(t *testing.T) {
	for name, test := range map[string]struct {
		mine         bool // the session already has the name
		atCreate     bool // another client creates it before the request arrives
		create       zkserver.Fault
		gone, theirs bool // before the read, it is deleted, or created again
		want         error
	}{
		"nothing":                                 {},
		"deleted":                                 {gone: true, want: recipes.ErrRemoved},
		"deleted and created again":               {gone: true, theirs: true, want: recipes.ErrRemoved},
		"request lost":                            {create: zkserver.Fault{CloseBefore: true}},
		"request lost, created by another":        {atCreate: true, create: zkserver.Fault{CloseBefore: true}, want: recipes.ErrNodeExists},
		"request lost, created before":            {mine: true, create: zkserver.Fault{CloseBefore: true}, want: recipes.ErrNodeExists},
		"reply lost":                              {create: zkserver.Fault{DropReply: true}},
		"reply lost, deleted, created by another": {create: zkserver.Fault{DropReply: true}, gone: true, theirs: true, want: recipes.ErrNodeExists},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, ctx := embedded(t), bounded(t)
			s, other := open(t, to(srv)), open(t, to(srv))
			if test.mine { // older than the last transaction that the session has seen
				must.Get(s.CreateNamed(ctx, "/name", nil))(t)
			}
			byAnother := func() {
				if _, err := other.CreateNamed(ctx, "/name", nil); err != nil {
					t.Error(err)
				}
			}
			var creations, reads atomic.Int64
			srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
				switch {
				case r.SessionID != s.ID() || r.Path != "/name":
				case r.Op == zkserver.OpCreate && creations.Add(1) == 1:
					if f = test.create; test.atCreate {
						byAnother()
					}
				case r.Op == zkserver.OpExists && reads.Add(1) == 1:
					if test.gone {
						must.Report(t, other.DeleteOnce(ctx, "/name", -1))
					}
					if test.theirs {
						byAnother()
					}
				}
				return f
			})
			stat, err := s.CreateNamed(ctx, "/name", nil)
			if !errors.Is(err, test.want) || err == nil && stat.EphemeralOwner != s.ID() {
				t.Errorf("got %v, want %v; the owner is %#x, not %#x", err, test.want, stat.EphemeralOwner, s.ID())
			}
		})
	}
}

// The caller gives up while its znode is created. The znode is deleted, and then the next call
// can create the name.
func TestTheZnodeOfACancelledCreationIsDeleted(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, to(srv))
	must.Do(t, s.Ensure(ctx, "/line"))
	for name, test := range map[string]struct {
		op     zkserver.Op
		create func(context.Context) error
	}{
		"CreateNamed": {zkserver.OpCreate, func(ctx context.Context) error { _, err := s.CreateNamed(ctx, "/line/name", nil); return err }},
		"CreateBare": {zkserver.OpCreate2, func(ctx context.Context) error {
			_, _, err := s.CreateBare(ctx, "/line", "lock-", nil, false, s.EnsureQueuePath)
			return err
		}},
		"CreateProtected": {zkserver.OpCreate, func(ctx context.Context) error { _, err := s.CreateProtected(ctx, "/line", "x-", nil); return err }},
	} {
		patience, cancel := context.WithCancel(ctx)
		proceed, deleted := make(chan struct{}), make(chan struct{})
		srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
			switch r.Op {
			case test.op:
				cancel()
				f.Hold = proceed
			case zkserver.OpDelete:
				close(deleted)
			}
			return f
		})
		if err := test.create(patience); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		close(proceed)
		select {
		case <-deleted:
		case <-ctx.Done():
			t.Fatalf("%s: nothing is deleted", name)
		}
		srv.SetFault(nil)
	}
	must.Do(t, s.Sync(ctx, "/")) // after the last deletion
	if names, err := s.Children(ctx, "/line"); err != nil || len(names) != 0 {
		t.Errorf("%q, %v", names, err)
	}
	if _, err := s.CreateNamed(ctx, "/line/name", nil); err != nil {
		t.Error(err)
	}
}
