package session_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// deletion is a deletion of a znode by its owner, with changes and faults on the way.
type deletion struct {
	t        *testing.T
	ctx      context.Context
	s, other *session.Session // the owner, and another client
	path     string
}

func (d *deletion) gone() {
	d.t.Helper()
	must.Report(d.t, d.other.DeleteOnce(d.ctx, d.path, -1))
}

// again deletes the znode, and the other client creates one of the same name.
func (d *deletion) again() {
	d.t.Helper()
	d.created()
	d.written()
}

// created does the same as again, without the write: the new znode has the version of the former
// one.
func (d *deletion) created() {
	d.t.Helper()
	_ = d.other.DeleteOnce(d.ctx, d.path, -1) // the znode may be deleted already
	if _, err := d.other.CreateNamed(d.ctx, d.path, nil); err != nil {
		d.t.Error(err)
	}
}

func (d *deletion) written() {
	d.t.Helper()
	if _, err := d.other.SetOnce(d.ctx, d.path, []byte("x"), -1); err != nil {
		d.t.Error(err)
	}
}

// The owner deletes its znode even if replies are lost, and never deletes another znode of that
// name.
func TestADeletionHitsItsOwnersZnode(t *testing.T) {
	nothing := func(*deletion) {}
	for name, test := range map[string]struct {
		before func(*deletion) // runs at the owner's first request
		fault  zkserver.Fault  // the fault of the first deletion
		read   func(*deletion) // runs before the owner's first read
		want   error
		stays  bool // whether another client's znode of that name must remain
	}{
		"there":                                 {before: nothing},
		"deleted by another client":             {before: (*deletion).gone, want: recipes.ErrNoNode},
		"written by another client":             {before: (*deletion).written},
		"created again by another client":       {before: (*deletion).again, want: recipes.ErrNoNode, stays: true},
		"created again before the read":         {before: (*deletion).written, read: (*deletion).again, want: recipes.ErrNoNode, stays: true},
		"deleted before the read":               {before: (*deletion).written, read: (*deletion).gone, want: recipes.ErrNoNode},
		"request lost":                          {before: nothing, fault: zkserver.Fault{CloseBefore: true}},
		"request lost, deleted before the read": {before: nothing, fault: zkserver.Fault{CloseBefore: true}, read: (*deletion).gone},
		"request lost, written before a read":   {before: nothing, fault: zkserver.Fault{CloseBefore: true}, read: (*deletion).written},
		"reply lost":                            {before: nothing, fault: zkserver.Fault{DropReply: true}},
		"reply lost, created again since":       {before: nothing, fault: zkserver.Fault{DropReply: true}, read: (*deletion).again, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := embedded(t)
			d := &deletion{t: t, ctx: zktest.Bounded(t), s: open(t, to(srv)), other: open(t, to(srv)), path: "/d/znode"}
			stat := must.Get(d.s.CreateNamed(d.ctx, d.path, nil))(t)
			_, watch, err := d.s.DeletionW(d.ctx, d.path)
			must.Do(t, err)
			test.before(d)
			var deleting, reading sync.Once
			srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
				switch {
				case r.SessionID != d.s.ID():
				case r.Op == zkserver.OpDelete:
					deleting.Do(func() { f = test.fault })
				case r.Op == zkserver.OpExists && test.read != nil:
					reading.Do(func() { test.read(d) })
				}
				return f
			})
			if err := <-d.s.DeleteOwned(d.path, stat, watch); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if _, err := d.other.Stat(d.ctx, d.path); (err == nil) != test.stays {
				t.Errorf("a later read returns %v", err)
			}
		})
	}
}

// A deletion that the server refuses, or whose session has ended, returns that error. It is not
// repeated forever.
func TestADeletionThatIsNotCarriedOut(t *testing.T) {
	for _, over := range []bool{false, true} {
		srv, ctx := embedded(t), zktest.Bounded(t)
		cfg, want := to(srv), recipes.ErrAccessDenied
		cfg.ACL = []recipes.ACL{{Permissions: recipes.PermAll &^ recipes.PermDelete, Scheme: "world", ID: "anyone"}}
		cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"} // otherwise the session has no identity
		s := open(t, cfg)
		stat := must.Get(s.CreateNamed(ctx, "/kept/znode", nil))(t)
		place := bare(t, s, "/kept")
		if over {
			must.Do(t, s.Close(ctx))
			want = recipes.ErrClosed
		}
		for name, deletion := range map[string]<-chan error{
			"Delete":      s.Delete("/kept/znode"),
			"DeleteOwned": s.DeleteOwned("/kept/znode", stat, nil),
			"DeleteBare":  s.DeleteBare(place),
			"Handoff":     s.Handoff(ctx, place),
		} {
			select {
			case err := <-deletion:
				if !errors.Is(err, want) {
					t.Errorf("%s: %v; want %v", name, err, want)
				}
			case <-ctx.Done():
				t.Errorf("%s returns no result", name)
			}
		}
		if n := s.Places(); n != 1 && !over {
			t.Errorf("%d places are remembered; the znode still exists", n)
		}
		if !s.Identified() {
			t.Error("the session has dropped its identity")
		}
	}
}

// TestARemovalRunsOnce: callers share the attempt in progress, and its result stays once the
// znode is known to be deleted.
func TestARemovalRunsOnce(t *testing.T) {
	for _, result := range []error{nil, recipes.ErrNotHeld} {
		zktest.Bubble(t, func(t *testing.T) {
			var r session.Removal
			started := 0
			var settle func(error)
			start := func(s func(error)) { started++; settle = s }
			results := make(chan error, 2)
			for range 2 {
				go func() { results <- r.Run(t.Context(), "remove", start) }()
			}
			synctest.Wait()
			r.Start(start)
			settle(result)
			for range 2 {
				if err := <-results; err != result {
					t.Errorf("Run returned %v, want %v", err, result)
				}
			}
			if err := r.Run(t.Context(), "remove", start); err != result {
				t.Errorf("a later Run returned %v, want %v", err, result)
			}
			if started != 1 {
				t.Errorf("it was started %d times", started)
			}
		})
	}
}

// TestARefusedRemovalRunsAgain: no other client would delete the znode.
func TestARefusedRemovalRunsAgain(t *testing.T) {
	var r session.Removal
	tried := 0
	if err := r.Run(t.Context(), "remove", func(settle func(error)) { tried++; settle(recipes.ErrAccessDenied) }); err != recipes.ErrAccessDenied || tried != 1 {
		t.Fatalf("refused after %d attempts: %v", tried, err)
	}
	must.Report(t, r.Run(t.Context(), "remove", func(settle func(error)) { settle(nil) }))
}

// TestARemovalThatWasRefusedBeforeIsNotTheAnswer: an attempt in progress may have been refused
// before the call began.
func TestARemovalThatWasRefusedBeforeIsNotTheAnswer(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		var r session.Removal
		var settle func(error)
		r.Start(func(s func(error)) { settle = s })
		result := make(chan error, 1)
		go func() { result <- r.Run(t.Context(), "remove", func(settle func(error)) { settle(nil) }) }()
		synctest.Wait()
		settle(recipes.ErrAccessDenied)
		must.Report(t, <-result)
	})
}

// TestARemovalIsAwaitedTwiceAtMost: a caller that joins a later attempt returns its result,
// even if that is another refusal.
func TestARemovalIsAwaitedTwiceAtMost(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		var r session.Removal
		settles := make(chan func(error), 10)
		start := func(settle func(error)) { settles <- settle }
		r.Start(start)
		results := make(chan error, 2)
		for range 2 {
			go func() { results <- r.Run(t.Context(), "remove", start) }()
		}
		for range 2 {
			synctest.Wait()
			(<-settles)(recipes.ErrAccessDenied)
		}
		synctest.Wait()
		if len(results) != 2 || len(settles) != 0 {
			t.Fatalf("%d of 2 have a result, and %d more tries have begun", len(results), len(settles))
		}
		for range 2 {
			if err := <-results; err != recipes.ErrAccessDenied {
				t.Error(err)
			}
		}
	})
}

// TestARemovalOutlivesItsCaller: the deletion continues after a caller gives up, even if its
// context was already done.
func TestARemovalOutlivesItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var r session.Removal
	var settle func(error)
	err := r.Run(ctx, "remove", func(s func(error)) { settle = s })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
	settle(nil)
	if err := r.Run(ctx, "remove", nil); err != nil {
		t.Errorf("the result counts more than the ended context: %v", err)
	}
}
