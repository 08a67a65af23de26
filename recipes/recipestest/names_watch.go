package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func (f *fixture) watchName(s recipes.Recipes, path, name string) <-chan recipes.Record {
	f.Helper()
	records, err := f.names(s, path).Watch(f.ctx, name)
	f.must(err)
	return records
}

// becomes receives records until one has this data.
func (f *fixture) becomes(records <-chan recipes.Record, data string) {
	f.Helper()
	for {
		if r := receive(f, records, "the record "+data); string(r.Data) == data && r.None() == (data == "") {
			return
		}
	}
}

func namesWatch(f *fixture) {
	records := f.watchName(f.open(), f.path("n"), "db")
	f.becomes(records, "")
	for _, data := range []string{"one", "two"} {
		s := f.open()
		r := f.register(s, f.path("n"), "db", data)
		f.becomes(records, data)
		f.must(r.Update(f.ctx, []byte(data+" more")))
		f.becomes(records, data+" more")
		f.must(s.Close(f.ctx))
		f.becomes(records, "")
	}
	n := f.names(f.open(), f.path("n"))
	f.must(n.RegisterPersistent(f.ctx, "db", []byte("three")))
	f.becomes(records, "three")
	f.must(n.Unregister(f.ctx, "db", 0))
	f.becomes(records, "")
}

func namesWatchReconnects(f *fixture) {
	s := f.open()
	records := f.watchName(s, f.path("n"), "db")
	f.becomes(records, "")
	f.sever(s)
	f.register(f.open(), f.path("n"), "db", "x")
	f.reconnect(s)
	f.becomes(records, "x")
}

func namesWatchEnds(f *fixture) {
	s := f.open()
	ctx, cancel := context.WithCancel(f.ctx)
	one, err := f.names(s, f.path("n")).Watch(ctx, "db")
	f.must(err)
	two := f.watchName(s, f.path("n"), "db")
	cancel()
	drained(f, one, "the cancelled channel")
	f.expire(s)
	drained(f, two, "the channel of an expired session")
	f.is(errOf(f.names(s, f.path("n")).Watch(f.ctx, "db")), recipes.ErrExpired)
}
