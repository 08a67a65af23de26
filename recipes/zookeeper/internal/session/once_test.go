package session_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// at injects a fault at the first request of a kind.
func at(srv *zkserver.Server, op zkserver.Op, fault func() zkserver.Fault) (met func() bool) {
	var n atomic.Int64
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op == op && n.Add(1) == 1 {
			return fault()
		}
		return zkserver.Fault{}
	})
	return func() bool { return n.Load() > 0 }
}

func faultOf(f zkserver.Fault) func() zkserver.Fault { return func() zkserver.Fault { return f } }

func TestAWriteThatIsSentOnceHasAnUnknownOutcome(t *testing.T) {
	srv := embedded(t)
	s, ctx := open(t, to(srv)), t.Context()
	must.Do(t, s.Create(ctx, "/a", []byte("0")))
	for name, fault := range map[string]zkserver.Fault{"before": {CloseBefore: true}, "after": {DropReply: true}} {
		met := at(srv, zkserver.OpSetData, faultOf(fault))
		if _, err := s.SetOnce(ctx, "/a", []byte(name), -1); !errors.Is(err, recipes.ErrUnknownOutcome) || !met() {
			t.Errorf("set, connection lost %s: %v", name, err)
		}
	}
	stat, err := s.SetOnce(ctx, "/a", []byte("1"), 1)
	if err != nil || stat.Version != 2 {
		t.Errorf("version %d, %v; want 2: one of the two was carried out, once", stat.Version, err)
	}
	if err := s.DeleteOnce(ctx, "/a", 7); !errors.Is(err, recipes.ErrBadVersion) {
		t.Errorf("another version: %v", err)
	}
	at(srv, zkserver.OpDelete, faultOf(zkserver.Fault{DropReply: true}))
	if err := s.DeleteOnce(ctx, "/a", 2); !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Errorf("delete, reply lost: %v", err)
	}
	if err := s.DeleteOnce(ctx, "/a", 2); !errors.Is(err, recipes.ErrNoNode) {
		t.Errorf("it was not deleted: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.DeleteOnce(ended, "/a", -1); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}

func TestACreationIsSentAgainOnlyIfItHasNotHappened(t *testing.T) {
	srv := embedded(t)
	s, ctx := open(t, to(srv)), t.Context()
	at(srv, zkserver.OpCreate, faultOf(zkserver.Fault{CloseBefore: true}))
	if err := s.Create(ctx, "/p/before", nil); err != nil {
		t.Errorf("lost before it arrived: %v", err)
	}
	at(srv, zkserver.OpCreate, faultOf(zkserver.Fault{DropReply: true}))
	if err := s.Create(ctx, "/p/after", nil); !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Errorf("it exists, and the creator is unknown: %v", err)
	}
	srv.SetFault(nil)
	if err := s.Create(ctx, "/p/after", nil); !errors.Is(err, recipes.ErrNodeExists) {
		t.Errorf("it exists: %v", err)
	}
}

func TestTheWatchOnADeletionIsNotWokenByData(t *testing.T) {
	srv := embedded(t)
	s, ctx := open(t, to(srv)), t.Context()
	stat := must.Get(s.CreateNamed(ctx, "/n", nil))(t)
	seen, deleted, err := s.DeletionW(ctx, "/n")
	if err != nil || seen.Czxid != stat.Czxid {
		t.Fatalf("%+v, %v", seen, err)
	}
	stat = must.Get(s.SetOnce(ctx, "/n", []byte("x"), -1))(t)
	must.Do(t, s.Sync(ctx, "/n"))
	select {
	case <-deleted.Fired():
		t.Error("woken by data")
	default:
	}
	must.Do(t, <-s.DeleteOwned("/n", stat, nil))
	<-deleted.Fired()
	if _, _, err := s.DeletionW(ctx, "/n"); !errors.Is(err, recipes.ErrNoNode) {
		t.Errorf("a deleted znode: %v", err)
	}
}

// Whichever znodes another client creates before the search, the bare znode is found and can be
// released by handoff.
func TestALostBareZnodeIsFoundAmongOthers(t *testing.T) {
	srv := embedded(t)
	s, other, ctx := open(t, to(srv)), open(t, to(srv)), t.Context()
	must.Get(other.CreateNamed(ctx, "/n/lock-2147483647", nil))(t)
	must.Get(s.Stat(ctx, "/n/lock-2147483647"))(t)
	lost := at(srv, zkserver.OpCreate2, faultOf(zkserver.Fault{DropReply: true}))
	place, _, err := s.CreateBare(ctx, "/n", "lock-", nil, false, s.EnsureQueuePath)
	if err != nil || !lost() {
		t.Fatalf("%+v, %v; a reply was lost: %v", place, err, lost())
	}
	must.Report(t, <-s.Handoff(ctx, place))
	if names, _, err := s.List(ctx, "/n"); err != nil || len(names) != 1 {
		t.Errorf("%q, %v: one of them has no owner", names, err)
	}
}

// If numbers are exhausted, an older bare znode may have a later number.
func TestABareZnodeIsFoundAmongExhaustedNumbers(t *testing.T) {
	srv := embedded(t)
	s, other, ctx := open(t, to(srv)), open(t, to(srv)), t.Context()
	must.Get(other.CreateNamed(ctx, "/n/lock--2147483647", nil))(t)
	must.Get(s.Stat(ctx, "/n/lock--2147483647"))(t)
	must.Do(t, srv.SetSequence("/n", math.MaxInt32))
	lost := at(srv, zkserver.OpCreate2, faultOf(zkserver.Fault{DropReply: true}))
	place, _, err := s.CreateBare(ctx, "/n", "lock-", nil, false, s.EnsureQueuePath)
	if err != nil || !lost() || place.Path != "/n/lock-2147483647" {
		t.Fatalf("%+v, %v; a reply was lost: %v", place, err, lost())
	}
	if names, _, err := s.List(ctx, "/n"); err != nil || len(names) != 2 {
		t.Errorf("%q, %v: one of them has no owner", names, err)
	}
}

// CreateNamed recognizes its own znode by owner and age, and returns what another client does
// to it before the owner reads it.
func TestCreateNamedWhileAnotherClientChangesTheZnode(t *testing.T) {
	for name, test := range map[string]struct {
		mine         bool // the session already has the name
		atCreate     bool // another client creates the znode before the request arrives
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
			srv, ctx := embedded(t), zktest.Bounded(t)
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
