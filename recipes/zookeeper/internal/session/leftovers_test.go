package session_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func none(string) bool { return false }

// A znode that is deleted while DropRest runs is no error. DropRest does not delete what the
// session has created since, or another client's znode of an old name. When the rest is
// deleted, the session no longer counts it as a hold, and a second call sends nothing.
func TestTheRestOfAResumedSession(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	first, other := open(t, to(srv)), open(t, to(srv))
	for _, path := range []string{"/rest/kept", "/rest/spared", "/rest/gone", "/rest/theirs", "/rest/again", "/rest/plain"} {
		must.Get(first.CreateNamed(ctx, path, nil))(t)
	}
	s := resume(t, to(srv), letGo(t, first))
	must.Get(s.CreateNamed(ctx, "/rest/new", nil))(t)
	if !s.MarkResumed("/rest/kept") || s.MarkResumed("/rest/kept") {
		t.Error("a znode is resumed twice")
	}
	var gone, theirs, again sync.Once
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID != s.ID() {
			return zkserver.Fault{}
		}
		var err error
		switch r.Op.String() + " " + r.Path {
		case "exists /rest/gone":
			gone.Do(func() { err = other.DeleteOnce(ctx, r.Path, -1) })
		case "exists /rest/theirs":
			theirs.Do(func() {
				if err = other.DeleteOnce(ctx, r.Path, -1); err == nil {
					_, err = other.CreateNamed(ctx, r.Path, nil)
				}
			})
		case "delete /rest/again":
			again.Do(func() { err = other.DeleteOnce(ctx, r.Path, -1) })
		}
		must.Report(t, err)
		return zkserver.Fault{}
	})
	if holds := s.Holds(); holds != 1 {
		t.Errorf("before the rest is deleted the session counts %d holds", holds)
	}
	must.Do(t, s.DropRest(ctx, func(path string) bool { return path == "/rest/spared" }))
	for path, there := range map[string]bool{
		"/rest/plain": false, "/rest/kept": true, "/rest/spared": true, "/rest/gone": false, "/rest/theirs": true, "/rest/again": false, "/rest/new": true,
	} {
		if _, err := other.Stat(ctx, path); (err == nil) != there {
			t.Errorf("%s: %v", path, err)
		}
	}
	if s.MarkResumed("/rest/spared") {
		t.Error("a znode is resumed after DropRest")
	}
	before := s.Counters()
	must.Report(t, s.DropRest(ctx, none))
	if after := s.Counters(); after.Reads != before.Reads || after.Writes != before.Writes {
		t.Errorf("the second call sent %d reads and %d writes", after.Reads-before.Reads, after.Writes-before.Writes)
	}
	if holds := s.Holds(); holds != 0 {
		t.Errorf("when the rest is deleted the session counts %d holds", holds)
	}
	if other.MarkResumed("/rest/theirs") {
		t.Error("a session that was not resumed resumes a znode")
	}
	if err := other.DropRest(ctx, none); !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("a session that was not resumed: %v", err)
	}
}

// If a call fails, the next one deletes the rest, and nothing else.
func TestTheRestIsLeftToTheNextCall(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	cfg := to(srv)
	cfg.ACL = []recipes.ACL{{Permissions: recipes.PermAll &^ recipes.PermDelete, Scheme: "world", ID: "anyone"}}
	first, other := open(t, cfg), open(t, to(srv))
	must.Get(first.CreateNamed(ctx, "/denied/znode", nil))(t)
	must.Do(t, other.Ensure(ctx, "/open"))
	s := resume(t, cfg, letGo(t, first))
	for range 2 {
		if err := s.DropRest(ctx, none); !errors.Is(err, recipes.ErrAccessDenied) {
			t.Errorf("got %v", err)
		}
	}
	if holds := s.Holds(); holds != 1 {
		t.Errorf("the session counts %d holds", holds)
	}
	must.Get(s.CreateNamed(ctx, "/open/new", nil))(t)
	if err := s.DropRest(ctx, none); !errors.Is(err, recipes.ErrAccessDenied) {
		t.Errorf("got %v", err)
	}
	if _, err := other.Stat(ctx, "/open/new"); err != nil {
		t.Errorf("what the session has created since: %v", err)
	}
}
