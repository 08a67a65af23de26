//go:build unix

package host_test

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// texts are the data of elements.
func texts(elements []recipes.Element) (data []string) {
	for _, e := range elements {
		data = append(data, string(e.Data))
	}
	return data
}

// TestManyTakesOutliveTheirPlugin kills the plugin again and again while several calls of a session
// take batches. Each element is returned once, in spite of that. There is a real server if one was
// found.
func TestManyTakesOutliveTheirPlugin(t *testing.T) {
	t.Parallel()
	const n, callers = 400, 4
	v, run := surviveReal(t)
	q := zktest.QueueOf(t, v.session, "/q"+run, recipes.QueueConfig{})
	var data [][]byte
	for i := range n {
		data = append(data, fmt.Appendf(nil, "%03d", i))
	}
	must.Get(q.PutMany(ctx(t), data...))(t)
	all := make(chan string, 2*n)
	taking, cancel := context.WithCancel(ctx(t))
	defer cancel()
	var work errgroup.Group
	for range callers {
		work.Go(func() error {
			for {
				taken, err := q.TakeMany(taking, 3)
				if err != nil && taking.Err() != nil {
					return nil
				}
				for _, data := range texts(taken) {
					all <- data
				}
				if err != nil {
					return err
				}
			}
		})
	}
	ended := begin(work.Wait)
	patience := watchdog.Bounded(t)
	seen := map[string]int{}
	for len(seen) < n {
		select {
		case data := <-all:
			if seen[data]++; len(seen)%40 == 0 && seen[data] == 1 {
				v.kill()
			}
		case err := <-ended:
			t.Fatalf("%d of %d elements: %v", len(seen), n, err)
		case <-patience.Done():
			t.Fatalf("%d of %d elements", len(seen), n)
		}
	}
	cancel()
	must.Report(t, <-ended)
	close(all)
	for data := range all {
		seen[data]++
	}
	for data, times := range seen {
		if times != 1 {
			t.Errorf("%s was taken %d times", data, times)
		}
	}
}
