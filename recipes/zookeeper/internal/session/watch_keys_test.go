package session_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// One session waits behind its own place, and watches that place for its deletion too. The
// one behind is told of the hand-over, and the owner of the deletion alone.
func TestWatchesOfOnePlaceAreKeptApart(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, to(srv))
	for name, own := range map[string]func(place session.Place) (*session.Watch, error){
		"PlaceW": func(place session.Place) (*session.Watch, error) { return s.PlaceW(ctx, place) },
		"Neighbour": func(place session.Place) (*session.Watch, error) {
			_, _, own, err := s.Neighbour(ctx, place, "/")
			return own, err
		},
		"DeletionW": func(place session.Place) (*session.Watch, error) {
			_, own, err := s.DeletionW(ctx, place.Path)
			return own, err
		},
	} {
		var places [2]session.Place
		var err error
		for i := range places {
			if places[i], _, err = s.CreatePlace(ctx, "/line", "lock-", nil, false); err != nil {
				t.Fatal(err)
			}
		}
		mine, err := own(places[0])
		if err != nil {
			t.Fatal(err)
		}
		_, ahead, _, err := s.Neighbour(ctx, places[1], places[0].Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-s.HandOver(ctx, places[0]); err != nil {
			t.Fatal(err)
		}
		fired(t, ahead)
		fired(t, mine)
		if !ahead.Changed() || mine.Changed() {
			t.Errorf("%s: the one behind is told of a hand-over: %v; the owner: %v", name, ahead.Changed(), mine.Changed())
		}
		if err := <-s.DeletePlace(places[1]); err != nil {
			t.Fatal(err)
		}
	}
}

// A watch is remembered while the server has it, and no longer: not behind a read that
// failed, and not when the connection is lost.
func TestWatchesAreForgotten(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, to(srv))
	place, _, err := s.CreatePlace(ctx, "/line", "lock-", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateNamed(ctx, "/line/x", nil); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		read       func(path string)
		kept, none int // watches: of what is there, and of what is not
	}{
		"GetW":      {func(path string) { _, _, _ = s.GetW(ctx, path) }, 1, 0},
		"ExistsW":   {func(path string) { _, _, _ = s.ExistsW(ctx, path) }, 1, 1},
		"ChildrenW": {func(path string) { _, _, _ = s.ChildrenW(ctx, path) }, 1, 0},
		"DeletionW": {func(path string) { _, _, _ = s.DeletionW(ctx, path) }, 1, 0},
		"PlaceW":    {func(string) { _, _ = s.PlaceW(ctx, place) }, 1, 1},
		"Neighbour": {func(path string) { _, _, _, _ = s.Neighbour(ctx, place, path) }, 2, 1}, // with its own
	} {
		for path, want := range map[string]int{"/line/x": test.kept, "/line/none": test.none} {
			cutAndWait(t, srv, s)
			if n := s.WatchesKept(); n != 0 {
				t.Errorf("%s: %d watches of a lost connection are remembered", name, n)
			}
			for range 2 {
				test.read(path)
			}
			if n := s.WatchesKept(); n != want {
				t.Errorf("%s of %s: %d watches are remembered; want %d", name, path, n, want)
			}
		}
	}
	cutAndWait(t, srv, s)
	if n := s.WatchesKept(); n != 0 {
		t.Errorf("%d watches of a lost connection are remembered", n)
	}
}
