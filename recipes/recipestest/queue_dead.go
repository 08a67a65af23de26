package recipestest

import (
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func (e end) dead(want ...string) {
	e.f.Helper()
	dead, err := e.DeadLetters(e.f.ctx)
	e.f.must(err)
	var got []string
	for _, d := range dead {
		got = append(got, string(d.Data))
	}
	if !slices.Equal(got, want) {
		e.f.Errorf("dead letters %q; want %q", got, want)
	}
}

func receiveDead(f *fixture, form queueForm) {
	e := form.end(f, f.open(), f.path("a"), recipes.QueueConfig{MaxDeliveries: 2})
	e.dead()
	ids := e.put("bad", "good")
	for range 2 {
		for {
			d := get(f, e.Receive)
			if string(d.Element().Data) == "bad" {
				f.must(d.Return(f.ctx))
				break
			}
			f.must(d.Ack(f.ctx))
		}
	}
	e.dead("bad")
	if data, _ := f.read(f.path("a", "dead", string(ids[0]))); data != "bad" {
		f.Errorf("the dead letter has data %q", data)
	}
	if n, err := e.Len(f.ctx); err != nil || n > 0 { // it may have been received while bad was returned
		e.takes("good")
	}
	e.holds(0)
	f.awaitChildren(f.path("a", "claims"), 0)
}

func receiveDeadSession(f *fixture, form queueForm) {
	cfg := recipes.QueueConfig{MaxDeliveries: 1}
	dying := f.open()
	e, other := form.end(f, dying, f.path("a"), cfg), form.end(f, f.open(), f.path("a"), cfg)
	e.put("bad", "good")
	e.receives("bad", 1)
	f.must(dying.Close(f.ctx))
	f.must(other.receives("good", 1).Ack(f.ctx))
	other.dead("bad")
	other.holds(0)
}
