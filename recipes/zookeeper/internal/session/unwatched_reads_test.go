package session_test

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// A read leaves no watch at the server if nobody asked for one: it could not be taken
// back.
func TestAReadLeavesNoWatch(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, to(srv))
	if _, err := s.CreateNamed(ctx, "/x", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Ensure(ctx, "/line"); err != nil { // so that the reply that is lost is that of a place
		t.Fatal(err)
	}
	lost := at(srv, zkserver.OpCreate2, faultOf(zkserver.Fault{DropReply: true}))
	for name, read := range map[string]func() error{
		"Get":        func() error { _, err := s.Get(ctx, "/x"); return err },
		"Stat":       func() error { _, err := s.Stat(ctx, "/x"); return err },
		"Stat, none": func() error { _, _ = s.Stat(ctx, "/none"); return nil },
		"Children":   func() error { _, err := s.Children(ctx, "/"); return err },
		"List":       func() error { _, _, err := s.List(ctx, "/"); return err },
		"GetOwn":     func() error { _, err := s.GetOwn(ctx, "/x"); return err },
	} {
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := srv.Watches(); n != 0 {
			t.Errorf("%s leaves %d watches", name, n)
		}
	}
	for range 3 {
		place, _, err := s.CreatePlace(ctx, "/line", "lock-", nil, true)
		if err := errors.Join(err, <-s.DeletePlace(place)); err != nil || !lost() {
			t.Errorf("%v (met: %v)", err, lost())
		}
	}
	if n := srv.Watches(); n != 1 {
		t.Errorf("%d watches are left; want the one of the line", n)
	}
}
