package recipestest

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// member returns a name as the library creates it for a member of its double barrier.
func member(d recipes.Dialect) string {
	switch d {
	case recipes.Curator:
		return uuid.NewString()
	case recipes.Kazoo:
		return foreignName("")
	}
	return "_c_" + uuid.NewString() + "-member-0000000000"
}

func dialectRecipesTests() []test {
	return []test{
		{"a dialect that does not exist is ErrInvalid", func(f *fixture) {
			s, path := f.open(), f.path("unknown")
			const klingon = "klingon"
			_, lock := s.Lock(path, recipes.LockConfig{Dialect: klingon})
			_, shared := s.SharedLock(path, recipes.SharedLockConfig{Dialect: klingon})
			_, election := s.Election(path, recipes.ElectionConfig{Dialect: klingon})
			_, semaphore := s.Semaphore(path, recipes.SemaphoreConfig{Dialect: klingon, Permits: 1})
			_, counter := s.Counter(path, recipes.CounterConfig{Dialect: klingon})
			_, group := s.Group(path, recipes.GroupConfig{Dialect: klingon})
			_, queue := s.Queue(path, recipes.QueueConfig{Dialect: klingon})
			_, priority := s.PriorityQueue(path, recipes.QueueConfig{Dialect: klingon})
			_, barrier := s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Dialect: klingon, Size: 1})
			for _, err := range []error{lock, shared, election, semaphore, counter, group, queue, priority, barrier} {
				f.is(err, recipes.ErrInvalid)
			}
			f.failIf(f.exists(path), "the path was created")
		}},
		// The refusal comes when the recipe is opened or, through a plugin, at its first
		// call.
		{"a session's second dialect at a path is ErrInvalid", func(f *fixture) {
			s, path := f.open(), f.path("mixed")
			l, err := s.Lock(path, recipes.LockConfig{Dialect: recipes.Kazoo})
			if err == nil {
				_, err = l.Contenders(f.ctx)
			}
			f.speaks(err, path)
			for _, d := range []recipes.Dialect{"", recipes.ZooKeeper, recipes.Curator} {
				l, err := s.Lock(path, recipes.LockConfig{Dialect: d})
				if err == nil {
					_, err = l.TryAcquire(f.ctx)
				}
				f.is(err, recipes.ErrInvalid)
				e, err := s.Election(path, recipes.ElectionConfig{Dialect: d})
				if err == nil {
					_, err = e.Campaign(f.ctx, nil)
				}
				f.is(err, recipes.ErrInvalid)
				b, err := s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Dialect: d, Size: 1})
				if err == nil {
					_, err = b.Enter(f.ctx, nil)
				}
				f.is(err, recipes.ErrInvalid)
			}
			f.failIf(f.exists(path), "the path was created")
		}},
		{"data that kazoo cannot read is ErrInvalid", func(f *fixture) {
			s := f.open()
			const latin = "caf\xe9"
			l, err := s.Lock(f.path("l"), recipes.LockConfig{Dialect: recipes.Kazoo, Data: []byte(latin)})
			if err == nil {
				_, err = l.Acquire(f.ctx)
			}
			if errors.Is(err, recipes.ErrUnsupported) {
				f.speaks(err, f.path("l"))
			}
			f.is(err, recipes.ErrInvalid)
			e := must.Get(s.Election(f.path("e"), recipes.ElectionConfig{Dialect: recipes.Kazoo}))(f)
			f.is(errOf(e.Campaign(f.ctx, []byte(latin))), recipes.ErrInvalid)
			g := must.Get(s.Group(f.path("g"), recipes.GroupConfig{Dialect: recipes.Kazoo}))(f)
			f.is(errOf(g.Join(f.ctx, []byte(latin))), recipes.ErrInvalid)
		}},
		{"contenders are returned with their dialects, and unknown ones are counted", func(f *fixture) {
			path, flags := f.path("all"), int32(zk.FlagEphemeral|zk.FlagSequence)
			for _, end := range []string{"-lock-", "-latch-", "-__WRIT__", "__lock__", "-stranger-"} {
				f.theirs(path+"/"+foreignName(end), "", flags)
			}
			f.theirs(path+"/12345678-1234-1234-1234-123456789012", "", zk.FlagEphemeral) // a member of a double barrier
			lines, err := f.open().Contenders(f.ctx, path)
			f.speaks(err, path)
			got := ""
			for _, c := range lines.Contenders {
				got += fmt.Sprintf("%s of %s, ", c.Kind, c.Dialect)
			}
			want := "lock of zookeeper, lock of kazoo, shared-lock of curator, election of curator, "
			f.failIf(got != want || lines.Unknown != 1, "%s%d unknown; want %s1", got, lines.Unknown, want)
		}},
		{"a counter has the data format of its library, and another format is ErrForeign", func(f *fixture) {
			s := f.open()
			forms := map[recipes.Dialect]string{recipes.Curator: "\x00\x00\x00\x00\x00\x00\x00\x2a", recipes.Kazoo: "42"}
			for d, form := range forms {
				path := f.path(string(d))
				c, err := s.Counter(path, recipes.CounterConfig{Dialect: d})
				if err == nil {
					_, err = c.Get(f.ctx)
				}
				f.speaks(err, path)
				f.adds(c, 42, 42)
				data, _ := f.read(path)
				f.failIf(data != form, "%s: 42 is %q; want %q", d, data, form)
				other := map[recipes.Dialect]recipes.Dialect{recipes.Curator: recipes.Kazoo, recipes.Kazoo: recipes.Curator}[d]
				must.Get(f.outside.Set(path, []byte(forms[other]), -1))(f)
				f.is(errOf(c.Add(f.ctx, 1)), recipes.ErrForeign)
			}
		}},
		{"a group lists the members of the library", func(f *fixture) {
			path, s := f.path("party"), f.open()
			g, err := s.Group(path, recipes.GroupConfig{Dialect: recipes.Kazoo})
			if err == nil {
				_, err = g.Members(f.ctx)
			}
			f.speaks(err, path)
			theirs := f.theirs(path+"/"+foreignName("__party__"), "theirs", zk.FlagEphemeral)
			m := must.Get(g.Join(f.ctx, []byte("ours")))(f)
			f.failIf(!regexp.MustCompile(`/[0-9a-f]{32}__party__$`).MatchString(m.Znode()), "the znode is %s", m.Znode())
			members := get(f, g.Members)
			if len(members) != 2 || members[0].Znode != theirs || string(members[1].Data) != "ours" {
				f.Errorf("the members are %+v", members)
			}
			f.must(m.Leave(f.ctx))
			f.awaitChildren(path, 1)
		}},
		{"a queue has the elements of the library, and no other znodes", func(f *fixture) {
			s := f.open()
			for d, prefix := range map[recipes.Dialect]string{recipes.Curator: "qn-", recipes.Kazoo: "entry-100-"} {
				path := f.path(string(d))
				q, err := s.Queue(path, recipes.QueueConfig{Dialect: d})
				if err == nil {
					_, err = q.Len(f.ctx)
				}
				f.speaks(err, path)
				f.theirs(path+"/"+prefix, "theirs", zk.FlagSequence)
				id := must.Get(q.Put(f.ctx, []byte("ours")))(f)
				if names := f.children(path); len(names) != 2 || names[1] != string(id) || names[1][:len(prefix)] != prefix {
					f.Errorf("the children are %q; %s was put", names, id)
				}
				for _, want := range []string{"theirs", "ours"} {
					e := get(f, q.Take)
					f.same(string(e.Data), want)
				}
				f.is(errOf(q.Receive(f.ctx)), recipes.ErrInvalid)
				f.awaitChildren(path, 0)
			}
		}},
		{"a queue of another dialect is ErrForeign", func(f *fixture) {
			s := f.open()
			for _, prefix := range []string{"qn-", "entry-100-"} {
				path := f.path(prefix + "queue")
				theirs := f.theirs(path+"/"+prefix, "theirs", zk.FlagSequence)
				q := must.Get(s.Queue(path, recipes.QueueConfig{}))(f)
				_, put := q.Put(f.ctx, nil)
				_, take := q.Take(f.ctx)
				for _, err := range []error{put, take} {
					var foreign *recipes.ForeignError
					f.failIf(!errors.As(err, &foreign) || foreign.Znode != theirs, "%v; want ErrForeign of %s", err, theirs)
				}
				f.awaitChildren(path, 1)
			}
		}},
		// The library counts every znode with such a name. No znode may exist after
		// all members have left.
		{"a double barrier counts the members of the library, and its own are named as theirs", func(f *fixture) {
			for d, pattern := range map[recipes.Dialect]string{recipes.Curator: `/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, recipes.Kazoo: `/[0-9a-f]{32}$`} {
				path := f.path(string(d))
				b, err := f.open().DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: 3, Dialect: d})
				f.speaks(err, path)
				enter := func() *pending[recipes.Passage] {
					return start(f, func() (recipes.Passage, error) { return b.Enter(f.ctx, []byte("ours")) })
				}
				theirs := f.theirs(path+"/"+member(d), "", zk.FlagEphemeral)
				first := enter()
				f.awaitChildren(path, 2)
				first.blocked(f)
				p, q := enter().must(f), first.must(f)
				for _, p := range []recipes.Passage{p, q} {
					if data, stat := f.read(p.Znode()); data != "ours" || stat.Czxid != int64(p.Token()) || !regexp.MustCompile(pattern).MatchString(p.Znode()) {
						f.Errorf("the znode is %s: %q, %+v", p.Znode(), data, stat)
					}
					f.failIf(len(p.Members()) != 3, "entered with %q", p.Members())
				}
				one := startErr(f, func() error { return p.Leave(f.ctx) })
				other := startErr(f, func() error { return q.Leave(f.ctx) })
				one.blocked(f)
				other.blocked(f)
				f.remove(theirs)
				one.must(f)
				other.must(f)
				f.awaitChildren(path, 0)
			}
		}},
		// The error must come before the caller's znode is created, because
		// the other library would count that znode.
		{"a member of another dialect at a double barrier is ErrForeign", func(f *fixture) {
			for _, d := range recipes.Dialects() {
				for _, other := range recipes.Dialects() {
					if d == other {
						continue
					}
					path := f.path(string(d + "-" + other))
					theirs := f.theirs(path+"/"+member(other), "", zk.FlagEphemeral)
					b, err := f.open().DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: 1, Dialect: d})
					if err == nil {
						_, err = b.Enter(f.ctx, nil) // a barrier of size one would admit it
					}
					var foreign *recipes.ForeignError
					if d != recipes.ZooKeeper && errors.Is(err, recipes.ErrUnsupported) {
						continue
					}
					if !errors.As(err, &foreign) || foreign.Znode != theirs || foreign.Dialect != other {
						f.Errorf("%s: %v; want ErrForeign of %s", d, err, theirs)
					}
					_, stat := f.read(path)
					f.failIf(stat.Cversion != 1, "another znode than %s was created: %+v", theirs, stat)
				}
			}
		}},
	}
}
