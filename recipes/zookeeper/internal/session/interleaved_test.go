package session_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// nth injects a fault at a session's n-th request of a kind, and runs do then.
func nth(srv *zkserver.Server, s *session.Session, op zkserver.Op, n int, do func() error) (met func() error) {
	var mu sync.Mutex
	seen, result := 0, errors.New("the case was not met")
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID != s.ID() || r.Op != op {
			return zkserver.Fault{}
		}
		mu.Lock()
		seen++
		now := seen == n
		mu.Unlock()
		if now {
			err := do()
			mu.Lock()
			result = err
			mu.Unlock()
		}
		return zkserver.Fault{}
	})
	return func() error {
		srv.SetFault(nil)
		mu.Lock()
		defer mu.Unlock()
		return result
	}
}

// The first attempt is lost, and another client deletes the znode before the second one arrives.
// For all that the session knows, its first attempt may have deleted the znode.
func TestAnEarlierAttemptMayHaveDeletedTheZnode(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s, other := open(t, to(srv)), open(t, to(srv))
	stat := must.Get(s.CreateNamed(ctx, "/d/named", nil))(t)
	path := must.Get(s.CreateProtected(ctx, "/d", "n-", nil))(t)
	var places [2]session.BareZnode
	for i := range places {
		places[i] = bare(t, s, "/d")
	}
	for _, test := range []struct {
		name, path string
		op         zkserver.Op
		delete     func() <-chan error
	}{
		{"DeleteOwned", "/d/named", zkserver.OpDelete, func() <-chan error { return s.DeleteOwned("/d/named", stat, nil) }},
		{"Delete", path, zkserver.OpDelete, func() <-chan error { return s.Delete(path) }},
		{"DeleteBare", places[0].Path, zkserver.OpDelete, func() <-chan error { return s.DeleteBare(places[0]) }},
		{"Handoff", places[1].Path, zkserver.OpMulti, func() <-chan error { return s.Handoff(ctx, places[1]) }},
	} {
		n := 0
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID != s.ID() || r.Op != test.op {
				return zkserver.Fault{}
			}
			n++
			if n == 2 {
				must.Report(t, other.DeleteOnce(ctx, test.path, -1))
			}
			return zkserver.Fault{CloseBefore: n == 1}
		})
		if err := <-test.delete(); err != nil || n != 2 {
			t.Errorf("%s: %v after %d attempts", test.name, err, n)
		}
		srv.SetFault(nil)
		if err := <-test.delete(); !errors.Is(err, recipes.ErrNoNode) {
			t.Errorf("%s, again: %v", test.name, err)
		}
	}
}

// The path was deleted and created again, and the session has another bare znode of the same
// name.
func TestAnOlderPlaceOfTheSameName(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s, other := open(t, to(srv)), open(t, to(srv))
	older := bare(t, s, "/line")
	for _, path := range []string{older.Path, "/line"} {
		must.Do(t, other.DeleteOnce(ctx, path, -1))
	}
	later, _, err := s.CreateBare(ctx, "/line", "lock-", nil, false, s.EnsureQueuePath)
	if err != nil || later.Path != older.Path {
		t.Fatalf("%+v, %v", later, err)
	}
	for name, deletion := range map[string]<-chan error{"DeleteBare": s.DeleteBare(older), "Handoff": s.Handoff(ctx, older)} {
		if err := <-deletion; !errors.Is(err, recipes.ErrNoNode) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.ForgetBare(older)
	watch := must.Get(s.BareW(ctx, older))(t)
	fired(t, watch)
	if stat, err := s.Stat(ctx, later.Path); err != nil || stat.Czxid != later.Stat.Czxid {
		t.Errorf("the later place: %+v, %v", stat, err)
	}
	must.Report(t, <-s.Handoff(ctx, later))
	if n := s.Places(); n != 0 {
		t.Errorf("%d places are remembered", n)
	}
}

// A parent that the server deletes before its child is created is created again.
func TestAParentThatIsReapedIsCreatedAgain(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s, other := open(t, to(srv)), open(t, to(srv))
	reap := func() error { return other.DeleteOnce(ctx, "/p", -1) }
	for name, test := range map[string]struct {
		op     zkserver.Op
		create func() (string, error)
	}{
		"Create":          {zkserver.OpCreate, func() (string, error) { return "/p/x", s.Create(ctx, "/p/x", nil) }},
		"CreateNamed":     {zkserver.OpCreate, func() (string, error) { _, err := s.CreateNamed(ctx, "/p/x", nil); return "/p/x", err }},
		"CreateProtected": {zkserver.OpCreate, func() (string, error) { return s.CreateProtected(ctx, "/p", "x-", nil) }},
		"CreateBare": {zkserver.OpCreate2, func() (string, error) {
			place, _, err := s.CreateBare(ctx, "/p", "lock-", nil, false, s.EnsureQueuePath)
			return place.Path, err
		}},
	} {
		must.Do(t, s.Ensure(ctx, "/p"))
		met := nth(srv, s, test.op, 1, reap)
		path, err := test.create()
		if err := errors.Join(err, met()); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := errors.Join(other.DeleteOnce(ctx, path, -1), reap()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// If the znode of a creation whose reply was lost is deleted before it is found, it is created
// again.
func TestALostCreationWhoseZnodeIsDeletedIsRepeated(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s, other := open(t, to(srv)), open(t, to(srv))
	for name, test := range map[string]struct {
		op     zkserver.Op
		read   zkserver.Op
		create func() (string, error)
	}{
		"CreateNamed":             {zkserver.OpCreate, zkserver.OpExists, func() (string, error) { _, err := s.CreateNamed(ctx, "/p/x", nil); return "/p/x", err }},
		"CreateProtected, listed": {zkserver.OpCreate, zkserver.OpExists, func() (string, error) { return s.CreateProtected(ctx, "/p", "x-", nil) }},
		"CreateProtected":         {zkserver.OpCreate, zkserver.OpGetChildren2, func() (string, error) { return s.CreateProtected(ctx, "/p", "x-", nil) }},
		"CreateBare": {zkserver.OpCreate2, zkserver.OpGetChildren2, func() (string, error) {
			p, _, err := s.CreateBare(ctx, "/p", "lock-", nil, false, s.EnsureQueuePath)
			return p.Path, err
		}},
		"CreateBare, then listed": {zkserver.OpCreate2, zkserver.OpGetData, func() (string, error) {
			p, _, err := s.CreateBare(ctx, "/p", "lock-", nil, false, s.EnsureQueuePath)
			return p.Path, err
		}},
	} {
		must.Do(t, s.Ensure(ctx, "/p"))
		var lose, read sync.Once
		met := false
		srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
			switch {
			case r.SessionID != s.ID():
			case r.Op == test.op:
				lose.Do(func() { f.DropReply = true })
			case r.Op == test.read:
				read.Do(func() {
					met = true
					for _, n := range srv.Tree() {
						if n.Stat.EphemeralOwner == s.ID() {
							must.Report(t, other.DeleteOnce(ctx, n.Path, -1))
						}
					}
				})
			}
			return f
		})
		path, err := test.create()
		srv.SetFault(nil)
		if err != nil || !met {
			t.Errorf("%s: %v (met: %v)", name, err, met)
			continue
		}
		if err := other.DeleteOnce(ctx, path, -1); err != nil {
			t.Errorf("%s was not created again: %v", name, err)
		}
	}
}
