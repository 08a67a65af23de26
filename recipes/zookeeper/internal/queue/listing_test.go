package queue

import (
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestListingsAreKeptWithinBounds(t *testing.T) {
	qs := Of(nil)
	at := func(path string) *listing {
		q, err := qs.queue(path, recipes.QueueConfig{}, false)
		if err != nil {
			t.Fatal(err)
		}
		return q.listing
	}
	for i := range 3 * mostListings {
		path := fmt.Sprintf("/job/%d", i)
		if first := at(path); at(path) != first {
			t.Fatalf("two consumers of %s share no listing", path)
		}
	}
	if n := len(qs.listings); n > mostListings {
		t.Errorf("%d listings are kept, of %d at most", n, mostListings)
	}
}
