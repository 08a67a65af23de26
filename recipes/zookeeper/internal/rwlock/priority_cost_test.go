package rwlock_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// These are the costs of a grant that the README gives. Waiting costs nothing.
func TestCostsOfAPriorityLock(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		l := must.Get(s.PriorityLock("/cost", recipes.PriorityLockConfig{Priority: 5}))(t)
		if err := must.Get(l.AcquireWrite(ctx))(t).Release(ctx); err != nil { // creates the path
			t.Fatal(err)
		}
		before := srv.Counters()
		h := must.Get(l.AcquireWrite(ctx))(t)
		if d := srv.Counters().Sub(before); d.Writes != 2 || d.Reads != 4 {
			t.Errorf("a grant costs %d writes, %d reads; want 2, 4", d.Writes, d.Reads)
		}
		var waiting []recipes.Client
		granted := make(chan recipes.PriorityHold, 3)
		var last recipes.Place
		for i := range 3 {
			waiting = append(waiting, zktest.OpenVirtual(t, srv))
			place := make(chan recipes.Place, 1)
			w := must.Get(waiting[i].PriorityLock("/cost", recipes.PriorityLockConfig{Priority: i, Joined: func(p recipes.Place) { place <- p }}))(t)
			go func() {
				if h, err := w.AcquireWrite(ctx); err == nil {
					granted <- h
				}
			}()
			last = <-place
		}
		zktest.Idle(t, srv)
		before = srv.Counters()
		must.Do(t, h.HandOff(ctx, last.Znode))
		if err := h.Err(); !errors.Is(err, recipes.ErrReleased) { // no watch was set on the znode, so HandOff itself must end the hold
			t.Errorf("the former holder got %v", err)
		}
		h = <-granted
		zktest.Idle(t, srv)
		d := srv.Counters().Sub(before)
		t.Logf("a handoff with three waiting: %d writes, %d reads, %d events", d.Writes, d.Reads, d.WatchEvents)
		if h.Znode() != strings.Replace(last.Znode, "write", "writing", 1) {
			t.Errorf("%s was granted; the successor was %s", h.Znode(), last.Znode)
		}
		must.Do(t, h.Release(ctx))
		<-granted
		layout := zktest.LineLayout(srv, "/cost")
		for i, line := range layout {
			layout[i] = regexp.MustCompile(`[0-9]{10}`).ReplaceAllString(line, "N")
		}
		if want := []string{"/cost", "/cost/_c_GUID-writing-00-N", "/cost/_c_GUID-write-01-N"}; !slices.Equal(layout, want) {
			t.Errorf("the tree is %q; want %q", layout, want)
		}
	})
}

// After a write to its znode, a waiter reads the znode again. Its claim copies the new data.
func TestCostOfAWrittenPriorityWaiter(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		h := must.Get(must.Get(s.PriorityLock("/cost", recipes.PriorityLockConfig{}))(t).AcquireWrite(ctx))(t)
		place := make(chan recipes.Place, 1)
		waits := zktest.OpenVirtual(t, srv)
		l := must.Get(waits.PriorityLock("/cost", recipes.PriorityLockConfig{Joined: func(p recipes.Place) { place <- p }}))(t)
		granted := make(chan recipes.PriorityHold, 1)
		go func() {
			if h, err := l.AcquireWrite(ctx); err == nil {
				granted <- h
			}
		}()
		waiting := <-place
		synctest.Wait()
		for _, tt := range []struct {
			name string
			do   func() error
			want zktest.Cost
		}{
			{"its znode is written", func() error {
				return h.Write(ctx, recipes.Set(waiting.Znode, []byte("written"), recipes.AnyVersion))
			}, zktest.Cost{Reads: 5}},
			{"it is granted", func() error { return h.Release(ctx) }, zktest.Cost{Writes: 1, Reads: 4}},
		} {
			before := must.Get(waits.Stats(ctx))(t)
			must.Do(t, tt.do())
			synctest.Wait()
			after := must.Get(waits.Stats(ctx))(t)
			if got := (zktest.Cost{Writes: after.Writes - before.Writes, Reads: after.Reads - before.Reads}); got != tt.want {
				t.Errorf("%s: %v; want %v", tt.name, got, tt.want)
			}
		}
		h = <-granted
		if data := must.Get(l.Contenders(ctx))(t)[0].Data; string(data) != "written" {
			t.Errorf("the data of the holder is %q", data)
		}
	})
}

// Readers that are granted together do not refuse each other's claims.
func TestReadersClaimTogether(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		const readers = 8
		l := must.Get(s.PriorityLock("/together", recipes.PriorityLockConfig{}))(t)
		h := must.Get(l.AcquireWrite(ctx))(t)
		granted := make(chan recipes.PriorityHold, readers)
		for range readers {
			place := make(chan recipes.Place, 1)
			r := must.Get(zktest.OpenVirtual(t, srv).PriorityLock("/together", recipes.PriorityLockConfig{Joined: func(p recipes.Place) { place <- p }}))(t)
			go func() {
				if h, err := r.AcquireRead(ctx); err == nil {
					granted <- h
				}
			}()
			<-place
		}
		zktest.Idle(t, srv)
		before := srv.Counters()
		must.Do(t, h.Release(ctx))
		for range readers {
			<-granted
		}
		// Each reader watches the writer's znode and its own. Its claim deletes its own.
		if d := srv.Counters().Sub(before); d.Writes != 1+readers || d.WatchEvents != 2*readers {
			t.Errorf("%d readers were granted with %d writes and %d events; want the release, and one write and two events for each reader", readers, d.Writes, d.WatchEvents)
		}
	})
}
