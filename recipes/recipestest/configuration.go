package recipestest

import (
	"context"
	"fmt"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func configurationTests() []test {
	return []test{
		{"keys and revisions are validated, and nothing is sent", configArguments},
		{"get/a key that does not exist is ErrNoNode", configNone},
		{"set/it is read again with its revision", configSet},
		{"set/another revision than the expected is refused", configCompare},
		{"set/of many who expect the same revision one succeeds", configRace},
		{"set/parents are made, and keep their values", configParents},
		{"set/the configuration's own node is a key", configRoot},
		{"set/a value that is too large is refused before anything is sent", configTooLarge},
		{"set/it waits for the connection", configSuspended},
		{"set/a context that has ended changes nothing", configCancelled},
		{"set/a key that was deleted and made again has another revision", configAgain},
		{"delete/it compares revisions, and refuses parents", configDelete},
		{"it outlives its session", configOutlives},
		{"snapshot/all keys and nothing else, sorted", configSnapshot},
		{"watch/it tells every value, and none", configWatch},
		{"watch/a slow reader gets the latest", configWatchSlowly},
		{"watch/a change during a lost connection is not missed", configWatchReconnects},
		{"watch/a whole tree is followed", configWatchTree},
		{"watch/the channel is closed when the context ends or the session is lost", configWatchEnds},
	}
}

func (f *fixture) config(s recipes.Session, path string) recipes.Configuration {
	f.Helper()
	c, err := s.Configuration(path, recipes.ConfigurationConfig{})
	f.must(err)
	return c
}

func (f *fixture) set(c recipes.Configuration, key, value string, expected recipes.Revision) recipes.Revision {
	f.Helper()
	r, err := c.Set(f.ctx, key, []byte(value), expected)
	f.must(err)
	return r
}

func (f *fixture) has(c recipes.Configuration, key, value string) recipes.Revision {
	f.Helper()
	e, err := c.Get(f.ctx, key)
	f.must(err)
	if e.Key != key || string(e.Value) != value || e.Revision <= 0 || e.Modified.IsZero() || e.None() {
		f.Errorf("%+v; want %q", e, value)
	}
	return e.Revision
}

func configArguments(f *fixture) {
	s := f.open()
	for _, path := range []string{"", "a", "/"} {
		_, err := s.Configuration(path, recipes.ConfigurationConfig{})
		f.is(err, recipes.ErrInvalid)
	}
	c := f.config(s, f.path("c"))
	if c.Path() != f.path("c") {
		f.Errorf("path %q", c.Path())
	}
	before := f.counters(s)
	for _, key := range []string{"/a", "a/", "a//b", "..", "_c_x", "a/_c_x", "a\x00", "\xff"} {
		_, err := c.Get(f.ctx, key)
		f.is(err, recipes.ErrInvalid)
		_, err = c.Set(f.ctx, key, nil, recipes.AnyRevision)
		f.is(err, recipes.ErrInvalid)
		f.is(c.Delete(f.ctx, key, recipes.AnyRevision), recipes.ErrInvalid)
		_, err = c.Watch(f.ctx, key)
		f.is(err, recipes.ErrInvalid)
	}
	_, err := c.Set(f.ctx, "a", nil, -2)
	f.is(err, recipes.ErrInvalid)
	f.is(c.Delete(f.ctx, "a", -2), recipes.ErrInvalid)
	f.is(c.Delete(f.ctx, "a", recipes.NoRevision), recipes.ErrInvalid)
	f.is(c.Delete(f.ctx, "", recipes.AnyRevision), recipes.ErrInvalid)
	if after := f.counters(s); after.Reads != before.Reads || after.Writes != before.Writes {
		f.Error("something was sent")
	}
}

func configNone(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	for _, key := range []string{"", "a", "a/b"} {
		_, err := c.Get(f.ctx, key)
		f.is(err, recipes.ErrNoNode)
	}
	_, err := c.Set(f.ctx, "a", nil, 5)
	f.is(err, recipes.ErrNoNode)
	f.is(c.Delete(f.ctx, "a", recipes.AnyRevision), recipes.ErrNoNode)
	f.is(c.Delete(f.ctx, "a", 5), recipes.ErrNoNode)
	if f.exists(f.path("c")) {
		f.Error("looking made the configuration")
	}
}

func configSet(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	first := f.set(c, "host", "one", recipes.AnyRevision)
	if got := f.has(f.config(f.open(), f.path("c")), "host", "one"); got != first {
		f.Errorf("revision %d; Set said %d", got, first)
	}
	second := f.set(c, "host", "two", first)
	if second <= first || f.has(c, "host", "two") != second {
		f.Errorf("revision %d after %d", second, first)
	}
	f.set(c, "host", "", recipes.AnyRevision)
	f.has(c, "host", "")
	data, stat := f.read(f.path("c", "host"))
	if data != "" || stat.EphemeralOwner != 0 {
		f.Errorf("the znode has %q, %+v", data, stat)
	}
}

func configCompare(f *fixture) {
	c, other := f.config(f.open(), f.path("c")), f.config(f.open(), f.path("c"))
	first := f.set(c, "a", "1", recipes.NoRevision)
	_, err := other.Set(f.ctx, "a", []byte("x"), recipes.NoRevision)
	f.is(err, recipes.ErrNodeExists)
	f.isNot(err, recipes.ErrUnknownOutcome)
	second := f.set(other, "a", "2", first)
	_, err = c.Set(f.ctx, "a", []byte("3"), first)
	f.is(err, recipes.ErrBadVersion)
	f.isNot(err, recipes.ErrUnknownOutcome)
	f.has(c, "a", "2")
	f.set(c, "a", "3", second)
}

func configRace(f *fixture) {
	first := f.set(f.config(f.open(), f.path("c")), "a", "0", recipes.NoRevision)
	var all []*pending[recipes.Revision]
	for i := range 6 {
		c := f.config(f.open(), f.path("c"))
		all = append(all, start(f, func() (recipes.Revision, error) {
			return c.Set(f.ctx, "a", []byte(fmt.Sprint(i)), first)
		}))
	}
	won := 0
	for _, p := range all {
		if _, err := p.result(f); err == nil {
			won++
		} else {
			f.is(err, recipes.ErrBadVersion)
		}
	}
	if won != 1 {
		f.Errorf("%d succeeded", won)
	}
}

func configParents(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	f.set(c, "a/b/c", "deep", recipes.NoRevision)
	f.has(c, "a/b", "")
	f.set(c, "a", "value", recipes.AnyRevision)
	f.must(c.Delete(f.ctx, "a/b/c", recipes.AnyRevision))
	f.must(c.Delete(f.ctx, "a/b", recipes.AnyRevision))
	f.has(c, "a", "value")
}

func configRoot(f *fixture) {
	c := f.config(f.open(), f.path("deep", "c"))
	first := f.set(c, "", "root", recipes.NoRevision)
	if got := f.has(c, "", "root"); got != first {
		f.Errorf("revision %d; Set said %d", got, first)
	}
	_, err := c.Set(f.ctx, "", nil, recipes.NoRevision)
	f.is(err, recipes.ErrNodeExists)
	f.set(c, "", "more", first)
	f.set(c, "a", "1", recipes.NoRevision)
	f.must(c.Delete(f.ctx, "a", recipes.AnyRevision))
	f.has(c, "", "more")
}

func configTooLarge(f *fixture) {
	s := f.open(func(c *recipes.Config) { c.MaxPacket = 16 << 10 })
	c := f.config(s, f.path("c"))
	before := f.counters(s)
	_, err := c.Set(f.ctx, "a", make([]byte, 16<<10), recipes.AnyRevision)
	f.is(err, recipes.ErrTooLarge)
	f.isNot(err, recipes.ErrUnknownOutcome)
	if !strings.Contains(err.Error(), "16384") {
		f.Errorf("%v does not say how large", err)
	}
	if after := f.counters(s); after.Reads != before.Reads || after.Writes != before.Writes {
		f.Error("something was sent")
	}
	f.set(c, "a", strings.Repeat("x", 12<<10), recipes.AnyRevision)
}

func configSuspended(f *fixture) {
	s := f.open()
	c := f.config(s, f.path("c"))
	first := f.set(c, "a", "1", recipes.NoRevision)
	f.sever(s)
	p := start(f, func() (recipes.Revision, error) { return c.Set(f.ctx, "a", []byte("2"), first) })
	p.blocked(f)
	f.reconnect(s)
	p.value1(f)
	f.has(c, "a", "2")
}

func configCancelled(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	_, err := c.Set(f.ended(), "a", nil, recipes.AnyRevision)
	f.is(err, context.Canceled)
	f.is(c.Delete(f.ended(), "a", recipes.AnyRevision), context.Canceled)
	_, err = c.Get(f.ended(), "a")
	f.is(err, context.Canceled)
	if f.exists(f.path("c")) {
		f.Error("something was made")
	}
}

// Versions begin again at 0; revisions do not.
func configAgain(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	first := f.set(c, "a", "1", recipes.NoRevision)
	f.must(c.Delete(f.ctx, "a", first))
	second := f.set(c, "a", "1", recipes.NoRevision)
	_, err := c.Set(f.ctx, "a", []byte("x"), first)
	f.is(err, recipes.ErrBadVersion)
	f.is(c.Delete(f.ctx, "a", first), recipes.ErrBadVersion)
	f.set(c, "a", "2", second)
}

func configDelete(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	first := f.set(c, "a", "1", recipes.NoRevision)
	second := f.set(c, "a", "2", first)
	f.set(c, "a/b", "3", recipes.NoRevision)
	f.is(c.Delete(f.ctx, "a", first), recipes.ErrBadVersion)
	f.is(c.Delete(f.ctx, "a", second), recipes.ErrNotEmpty)
	f.must(c.Delete(f.ctx, "a/b", recipes.AnyRevision))
	f.must(c.Delete(f.ctx, "a", second))
	f.is(c.Delete(f.ctx, "a", second), recipes.ErrNoNode)
}

func configOutlives(f *fixture) {
	s := f.open()
	f.set(f.config(s, f.path("c")), "a", "1", recipes.NoRevision)
	f.must(s.Close(f.ctx))
	f.has(f.config(f.open(), f.path("c")), "a", "1")
}

func showEntries(entries []recipes.Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Key+"="+string(e.Value))
	}
	return strings.Join(all, " ")
}

func configSnapshot(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	none, err := c.Snapshot(f.ctx)
	f.must(err)
	if len(none) != 0 {
		f.Errorf("%+v", none)
	}
	f.set(c, "b/x", "2", recipes.NoRevision)
	revision := f.set(c, "a", "1", recipes.NoRevision)
	f.create(f.path("c", "c"), "by another hand")
	entries, err := c.Snapshot(f.ctx)
	f.must(err)
	if got, want := showEntries(entries), "= a=1 b= b/x=2 c=by another hand"; got != want {
		f.Errorf("snapshot %q; want %q", got, want)
	}
	if entries[1].Revision != revision {
		f.Errorf("revision %d; want %d", entries[1].Revision, revision)
	}
}

// turns takes entries until one has that value.
func (f *fixture) turns(entries <-chan recipes.Entry, value string, none bool) {
	f.Helper()
	for {
		if e := receive(f, entries, "the value "+value); string(e.Value) == value && e.None() == none {
			return
		}
	}
}

func (f *fixture) watchKey(c recipes.Configuration, key string) <-chan recipes.Entry {
	f.Helper()
	entries, err := c.Watch(f.ctx, key)
	f.must(err)
	return entries
}

func configWatch(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	entries := f.watchKey(f.config(f.open(), f.path("c")), "a/b")
	f.turns(entries, "", true)
	for _, value := range []string{"one", "two"} {
		f.set(c, "a/b", value, recipes.AnyRevision)
		f.turns(entries, value, false)
		f.set(c, "a/b", value+" more", recipes.AnyRevision)
		f.turns(entries, value+" more", false)
		f.must(c.Delete(f.ctx, "a/b", recipes.AnyRevision))
		f.turns(entries, "", true)
	}
}

func configWatchSlowly(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	entries := f.watchKey(f.config(f.open(), f.path("c")), "a")
	for i := range 8 {
		f.set(c, "a", fmt.Sprint(i), recipes.AnyRevision)
	}
	f.turns(entries, "7", false)
}

func configWatchReconnects(f *fixture) {
	s := f.open()
	c := f.config(f.open(), f.path("c"))
	f.set(c, "a", "1", recipes.AnyRevision)
	entries := f.watchKey(f.config(s, f.path("c")), "a")
	f.turns(entries, "1", false)
	tree, err := f.config(s, f.path("c")).WatchTree(f.ctx)
	f.must(err)
	receive(f, tree, "the tree")
	f.sever(s)
	f.set(c, "a", "2", recipes.AnyRevision)
	f.reconnect(s)
	f.turns(entries, "2", false)
	for showEntries(receive(f, tree, "the tree")) != "= a=2" {
	}
}

func configWatchTree(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	tree, err := f.config(f.open(), f.path("c")).WatchTree(f.ctx)
	f.must(err)
	if first := receive(f, tree, "the tree"); len(first) != 0 {
		f.Errorf("%+v", first)
	}
	becomes := func(want string) {
		f.Helper()
		for showEntries(receive(f, tree, "the tree "+want)) != want {
		}
	}
	f.set(c, "a", "1", recipes.AnyRevision)
	becomes("= a=1")
	f.set(c, "b/c", "2", recipes.AnyRevision)
	becomes("= a=1 b= b/c=2")
	f.set(c, "b/c", "3", recipes.AnyRevision)
	becomes("= a=1 b= b/c=3")
	f.must(c.Delete(f.ctx, "b/c", recipes.AnyRevision))
	becomes("= a=1 b=")
	f.set(c, "", "0", recipes.AnyRevision)
	becomes("=0 a=1 b=")
}

func configWatchEnds(f *fixture) {
	s := f.open()
	c := f.config(s, f.path("c"))
	ctx, cancel := context.WithCancel(f.ctx)
	one, err := c.Watch(ctx, "a")
	f.must(err)
	two, err := c.WatchTree(f.ctx)
	f.must(err)
	cancel()
	drained(f, one, "the cancelled channel")
	f.expire(s)
	drained(f, two, "the channel of an expired session")
	_, err = c.WatchTree(f.ctx)
	f.is(err, recipes.ErrExpired)
	_, err = c.Set(f.ctx, "a", nil, recipes.AnyRevision)
	f.is(err, recipes.ErrExpired)
}
