//go:build unix

package host_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// taking matches the transaction of a take or a receive at /q.
func taking(r zkserver.Request) bool {
	return r.Op == zkserver.OpMulti && strings.HasPrefix(r.Path, "/q/receipts/")
}

// texts are the data of elements.
func texts(elements []recipes.Element) (data []string) {
	for _, e := range elements {
		data = append(data, string(e.Data))
	}
	return data
}

// TestElementsOutliveTheirPlugin: a plugin is killed after it has deleted elements, and before it
// answers. Another one is killed before it deletes any. No element is lost or taken twice, and the
// error of none is unknown.
func TestElementsOutliveTheirPlugin(t *testing.T) {
	t.Parallel()
	v := survive(t)
	q := zktest.QueueOf(t, v.session, "/q", recipes.QueueConfig{})
	must.Get(q.PutMany(ctx(t), []byte("1"), []byte("2"), []byte("3"), []byte("4"), []byte("5")))(t)
	next := func(most int, want string) func() error {
		return func() error {
			taken, err := q.TakeMany(ctx(t), most)
			if got := fmt.Sprint(texts(taken)); err == nil && got != want {
				err = fmt.Errorf("took %s; want %s", got, want)
			}
			return err
		}
	}
	must.Report(t, v.dies(taking, next(2, "[1 2]")))
	reached := v.cutOff("/q/receipts/")
	done := begin(next(2, "[3 4]"))
	closes(t, "the point", reached)
	v.kill()
	v.server.SetFault(nil)
	must.Report(t, <-done)
	must.Report(t, next(2, "[5]")())
}

// TestManyTakesOutliveTheirPlugin kills the plugin again and again while several calls of a session
// take batches. Each element is returned once, in spite of that.
func TestManyTakesOutliveTheirPlugin(t *testing.T) {
	t.Parallel()
	const n, callers = 400, 4
	v := survive(t)
	q := zktest.QueueOf(t, v.session, "/q", recipes.QueueConfig{})
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
