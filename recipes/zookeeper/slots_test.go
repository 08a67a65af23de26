package zookeeper_test

import (
	"math"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Where all sequence numbers are the same, a claim puts its znode behind those that wait,
// and these find fewer than n ahead. They wait until a number is free.
func TestNumbersHoldThoughSequenceNumbersHaveEnded(t *testing.T) {
	srv := embedded(t)
	s, ctx := open(t, srv), bounded(t)
	at := func(s recipes.Client) recipes.Slots {
		return must[recipes.Slots](t)(s.Slots("/stuck", recipes.SemaphoreConfig{Permits: 2}))
	}
	if err := must[recipes.SlotHold](t)(at(s).Acquire(ctx)).Release(ctx); err != nil { // makes the path
		t.Fatal(err)
	}
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if creates(r.Op) {
			if err := srv.SetSequence("/stuck", math.MaxInt32); err != nil {
				t.Error(err)
			}
		}
		return zkserver.Fault{}
	})
	got := make(chan recipes.SlotHold)
	for range 5 {
		next := open(t, srv)
		go func() { got <- must[recipes.SlotHold](t)(at(next).Acquire(ctx)) }()
	}
	var held [2]recipes.SlotHold
	for range 5 {
		h := <-got
		if before := held[h.Slot()]; before != nil {
			t.Fatalf("%s is granted beside %s", h.Znode(), before.Znode())
		}
		if err := h.Write(ctx); err != nil {
			t.Error(err)
		}
		held[h.Slot()] = h
		if held[0] != nil && held[1] != nil {
			if _, err := at(s).TryAcquire(ctx); err == nil {
				t.Error("a third is granted")
			}
			for i, h := range held {
				held[i] = nil
				if err := h.Release(ctx); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
