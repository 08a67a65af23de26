package session_test

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Some reads are several requests, sent together. If the server refuses one of them, that is
// the result: after a refused sync, the read may come from a server that lags.
func TestAPartThatIsRefusedIsAnError(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, to(srv))
	must.Get(s.CreateNamed(ctx, "/x", []byte("data")))(t)
	var places [3]session.BareZnode // the watch on each is set once
	for i := range places {
		places[i] = bare(t, s, "/line")
	}
	predecessor := func(place session.BareZnode) func() error {
		return func() error { _, _, _, err := s.Predecessor(ctx, place, "/x"); return err }
	}
	for _, test := range []struct {
		name string
		op   zkserver.Op
		ask  func() error
	}{
		{"GetOwn", zkserver.OpGetData, func() error { _, err := s.GetOwn(ctx, "/x"); return err }},
		{"Predecessor", zkserver.OpGetData, predecessor(places[0])},
		{"Predecessor", zkserver.OpSetWatches, predecessor(places[1])},
		{"BareW", zkserver.OpSetWatches, func() error { _, err := s.BareW(ctx, places[2]); return err }},
		{"List", zkserver.OpGetChildren2, func() error { _, _, err := s.List(ctx, "/"); return err }},
		{"Children", zkserver.OpGetChildren2, func() error { _, err := s.Children(ctx, "/"); return err }},
		{"ChildrenW", zkserver.OpGetChildren2, func() error { _, _, err := s.ChildrenW(ctx, "/"); return err }},
		{"DeletionW", zkserver.OpGetChildren2, func() error { _, _, err := s.DeletionW(ctx, "/x"); return err }},
		{"Get", zkserver.OpGetData, func() error { _, err := s.Get(ctx, "/x"); return err }},
		{"GetW", zkserver.OpGetData, func() error { _, _, err := s.GetW(ctx, "/x"); return err }},
		{"ExistsW", zkserver.OpExists, func() error { _, _, err := s.ExistsW(ctx, "/x"); return err }},
		{"Stat", zkserver.OpExists, func() error { _, err := s.Stat(ctx, "/x"); return err }},
		{"Sync", zkserver.OpSync, func() error { return s.Sync(ctx, "/") }},
		{"Create", zkserver.OpExists, func() error { return s.Create(ctx, "/y", nil) }},
		{"Create", zkserver.OpCreate, func() error { return s.Create(ctx, "/y", nil) }},
	} {
		met := at(srv, test.op, faultOf(zkserver.Fault{Throttle: true}))
		if err := test.ask(); !errors.Is(err, recipes.ErrThrottled) || !met() {
			t.Errorf("%s, %v refused: %v (met: %v)", test.name, test.op, err, met())
		}
		srv.SetFault(nil)
		if err := test.ask(); err != nil {
			t.Errorf("%s, %v not refused: %v", test.name, test.op, err)
		}
		if test.name == "Create" {
			must.Report(t, s.DeleteOnce(ctx, "/y", -1))
		}
	}
}

// The refusal of the list of a resumed session's znodes is an error too.
func TestARefusedListOfWhatIsLeftOverIsAnError(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	first := open(t, to(srv))
	must.Get(first.CreateNamed(ctx, "/x", nil))(t)
	s := resume(t, to(srv), letGo(t, first))
	for _, op := range []zkserver.Op{zkserver.OpGetEphemerals, zkserver.OpExists} {
		met := at(srv, op, faultOf(zkserver.Fault{Throttle: true}))
		if err := s.DropRest(ctx, none); !errors.Is(err, recipes.ErrThrottled) || !met() {
			t.Errorf("%v refused: %v (met: %v)", op, err, met())
		}
	}
	must.Report(t, s.DropRest(ctx, none))
	if _, err := s.Stat(ctx, "/x"); !errors.Is(err, recipes.ErrNoNode) {
		t.Errorf("the rest: %v", err)
	}
}
