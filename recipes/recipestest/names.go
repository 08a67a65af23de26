package recipestest

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func namesTests() []test {
	return []test{
		{"a bad name is ErrInvalid, and nothing is sent", func(f *fixture) {
			s := f.open()
			f.is(errOf(s.Names("a")), recipes.ErrInvalid)
			n := f.names(s, f.path("n"))
			f.failIf(n.Path() != f.path("n"), "path %q", n.Path())
			f.sendsNothing(s, func() {
				for _, name := range []string{"", "a/b", ".", "..", "_c_x", "a\x00", "\xff"} {
					f.is(errOf(n.Register(f.ctx, name, nil)), recipes.ErrInvalid)
					f.is(n.RegisterPersistent(f.ctx, name, nil), recipes.ErrInvalid)
					f.is(n.Unregister(f.ctx, name, 0), recipes.ErrInvalid)
					f.is(errOf(n.Lookup(f.ctx, name)), recipes.ErrInvalid)
					f.is(errOf(n.Watch(f.ctx, name)), recipes.ErrInvalid)
				}
			})
		}},
		{"register/a name can be looked up, updated and unregistered", func(f *fixture) {
			s := f.open()
			r := f.register(s, f.path("n"), "db", "one")
			f.failIf(r.Name() != "db" || r.Znode() != f.path("n", "db"), "%s at %s", r.Name(), r.Znode())
			got := f.lookUp(f.open(), f.path("n"), "db", "one")
			f.failIf(got.Token != r.Token() || got.SessionID != s.ID(), "%+v; want the one of session %#x", got, s.ID())
			f.must(r.Update(f.ctx, []byte("two")))
			f.must(r.Write(f.ctx))
			f.lookUp(f.open(), f.path("n"), "db", "two")
			f.must(r.Unregister(f.ctx))
			f.lost(r, recipes.ErrReleased)
			f.is(errOf(f.names(s, f.path("n")).Lookup(f.ctx, "db")), recipes.ErrNoNode)
			f.register(s, f.path("n"), "db", "again")
		}},
		{"register/a taken name is an error that names its session", func(f *fixture) {
			a, b := f.open(), f.open()
			r := f.register(a, f.path("n"), "db", "x")
			for _, s := range []recipes.Client{a, b} {
				n := f.names(s, f.path("n"))
				_, err := n.Register(f.ctx, "db", nil)
				f.takenBy(err, a.ID(), r.Znode())
				f.takenBy(n.RegisterPersistent(f.ctx, "db", nil), a.ID(), r.Znode())
				f.takenBy(n.Unregister(f.ctx, "db", 0), a.ID(), r.Znode())
			}
			f.must(f.names(a, f.path("n")).RegisterPersistent(f.ctx, "mail", nil))
			_, err := f.names(b, f.path("n")).Register(f.ctx, "mail", nil)
			f.takenBy(err, 0, f.path("n", "mail"))
			f.takenBy(f.names(a, f.path("n")).RegisterPersistent(f.ctx, "mail", nil), 0, f.path("n", "mail"))
			f.held(r)
		}},
		{"register/the names of a session are free after its expiry", func(f *fixture) {
			s := f.open()
			r := f.register(s, f.path("n"), "db", "x")
			f.expire(s)
			f.lost(r, recipes.ErrExpired)
			f.awaitNode(r.Znode(), false)
			f.is(r.Unregister(f.ctx), recipes.ErrNotHeld, recipes.ErrExpired)
			f.register(f.open(), f.path("n"), "db", "y")
		}},
		{"register/a registration whose znode is deleted is lost", func(f *fixture) {
			r := f.register(f.open(), f.path("n"), "db", "x")
			f.remove(r.Znode())
			f.lost(r, recipes.ErrRemoved)
			f.register(f.open(), f.path("n"), "db", "y")
			f.is(r.Unregister(f.ctx), recipes.ErrRemoved)
			f.is(r.Update(f.ctx, []byte("z")), recipes.ErrRemoved)
			f.lookUp(f.open(), f.path("n"), "db", "y")
		}},
		{"register/a cancelled call leaves nothing", func(f *fixture) {
			s := f.open()
			n := f.names(s, f.path("n"))
			f.is(errOf(n.Register(f.ended(), "a", nil)), context.Canceled)
			f.is(n.RegisterPersistent(f.ended(), "b", nil), context.Canceled)
			f.sever(s)
			f.is(errOf(n.Register(f.briefly(), "c", nil)), context.DeadlineExceeded)
			f.reconnect(s)
			f.awaitNode(f.path("n", "c"), false)
			records := get(f, n.List)
			f.failIf(len(records) != 0, "%+v", records)
		}},
		{"persistent/Unregister with a token deletes no later registration of the name", func(f *fixture) {
			n := f.names(f.open(), f.path("n"))
			f.is(n.Unregister(f.ctx, "db", 0), recipes.ErrNoNode)
			f.must(n.RegisterPersistent(f.ctx, "db", []byte("x")))
			first := f.lookUp(f.open(), f.path("n"), "db", "x")
			f.is(n.Unregister(f.ctx, "db", first.Token+1), recipes.ErrBadVersion)
			f.must(n.Unregister(f.ctx, "db", first.Token))
			f.must(n.RegisterPersistent(f.ctx, "db", []byte("y")))
			f.is(n.Unregister(f.ctx, "db", first.Token), recipes.ErrBadVersion)
			f.lookUp(f.open(), f.path("n"), "db", "y")
			f.must(n.Unregister(f.ctx, "db", 0))
			f.is(errOf(n.Lookup(f.ctx, "db")), recipes.ErrNoNode)
		}},
		{"register/data that is too large is ErrTooLarge", func(f *fixture) {
			n := f.names(f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 8 << 10 }), f.path("n"))
			f.is(errOf(n.Register(f.ctx, "a", make([]byte, 9<<10))), recipes.ErrTooLarge)
			f.is(n.RegisterPersistent(f.ctx, "a", make([]byte, 9<<10)), recipes.ErrTooLarge)
		}},
		{"list/all names are returned, sorted, and receipts are not; a persistent name belongs to no session", func(f *fixture) {
			s := f.open()
			n := f.names(s, f.path("n"))
			records := get(f, n.List)
			f.failIf(len(records) != 0, "%+v", records)
			f.register(s, f.path("n"), "b", "2")
			f.must(n.RegisterPersistent(f.ctx, "a", []byte("1")))
			f.create(f.path("n", "c"), "3") // by another client
			records = get(f, n.List)
			if len(records) != 3 || records[0].Name != "a" || records[1].Name != "b" || records[2].Name != "c" ||
				records[0].SessionID != 0 || records[1].SessionID != s.ID() || string(records[2].Data) != "3" {
				f.Errorf("%+v", records)
			}
		}},
		{"list/a name that may not be read is returned as Unreadable, with the others", func(f *fixture) {
			s := f.open()
			n := f.names(s, f.path("n"))
			secret := f.register(s, f.path("n"), "secret", "2")
			f.must(n.RegisterPersistent(f.ctx, "open", []byte("1")))
			f.acl(f.path("n", "secret"), zk.PermAll&^zk.PermRead)
			records := get(f, n.List)
			if len(records) != 2 || string(records[0].Data) != "1" || records[0].Unreadable {
				f.Fatalf("%+v", records)
			}
			r := records[1]
			f.failIf(!r.Unreadable || r.Data != nil || r.Name != "secret" || r.Znode != secret.Znode(), "%+v", r)
			reported := r.SessionID == s.ID() && r.Token == secret.Token() && !r.Since.IsZero()
			if hidden := r.SessionID == 0 && r.Token == 0 && r.Since.IsZero(); !reported && !hidden { // hidden since ZooKeeper 3.9
				f.Errorf("%+v", r)
			}
		}},
		{"watch/registrations, updates and ends are reported", func(f *fixture) {
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
		}},
		{"watch/a change during a lost connection is not missed", func(f *fixture) {
			s := f.open()
			records := f.watchName(s, f.path("n"), "db")
			f.becomes(records, "")
			f.sever(s)
			f.register(f.open(), f.path("n"), "db", "x")
			f.reconnect(s)
			f.becomes(records, "x")
		}},
		{"watch/the channel is closed when the context ends or the session is lost", func(f *fixture) {
			s := f.open()
			ctx, cancel := context.WithCancel(f.ctx)
			one := must.Get(f.names(s, f.path("n")).Watch(ctx, "db"))(f)
			two := f.watchName(s, f.path("n"), "db")
			cancel()
			drained(f, one, "the cancelled channel")
			f.expire(s)
			drained(f, two, "the channel of an expired session")
			f.is(errOf(f.names(s, f.path("n")).Watch(f.ctx, "db")), recipes.ErrExpired)
		}},
	}
}

func (f *fixture) names(s recipes.Recipes, path string) recipes.Names {
	f.Helper()
	return must.Get(s.Names(path))(f)
}

func (f *fixture) register(s recipes.Recipes, path, name, data string) recipes.Registration {
	f.Helper()
	return must.Get(f.names(s, path).Register(f.ctx, name, []byte(data)))(f)
}

func (f *fixture) lookUp(s recipes.Recipes, path, name, data string) recipes.Record {
	f.Helper()
	r := must.Get(f.names(s, path).Lookup(f.ctx, name))(f)
	if string(r.Data) != data || r.Name != name || r.Znode != path+"/"+name || r.Token == 0 || r.Since.IsZero() || r.None() {
		f.Errorf("%+v; want %s with %q", r, name, data)
	}
	return r
}

func (f *fixture) watchName(s recipes.Recipes, path, name string) <-chan recipes.Record {
	f.Helper()
	return must.Get(f.names(s, path).Watch(f.ctx, name))(f)
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
