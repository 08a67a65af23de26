package feed_test

import (
	"context"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/feed"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestWatchDeliversTheCurrentAndTheLastValue(t *testing.T) {
	f := feed.New(1)
	w := f.Watch(t.Context())
	if got := <-w; got != 1 {
		t.Fatalf("first value is %d, want 1", got)
	}
	f.Set(2)
	f.Set(3)
	f.Close(4)
	f.Set(5)
	f.Close(6)
	last := 0
	for v := range w {
		if v <= last {
			t.Fatalf("%d after %d", v, last)
		}
		last = v
	}
	if last != 4 {
		t.Fatalf("last value is %d, want 4", last)
	}
}

func TestWatchOfAClosedFeedDeliversTheLastValue(t *testing.T) {
	f := feed.New(1)
	f.Close(2)
	w := f.Watch(t.Context())
	if got, ok := <-w; !ok || got != 2 {
		t.Fatalf("got %d, %v", got, ok)
	}
	if _, ok := <-w; ok {
		t.Fatal("the channel stays open after the last value")
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := feed.New(1).Watch(ctx)
	cancel()
	for range w {
	}
}

func TestNotifyMissesNoValue(t *testing.T) {
	f := feed.New(1)
	var got []int
	f.Notify(func(v int) { got = append(got, v) })
	f.Set(2)
	f.Set(3)
	f.Close(4)
	f.Set(5)
	if !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("got %v", got)
	}
}
