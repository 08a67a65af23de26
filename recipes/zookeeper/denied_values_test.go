package zookeeper_test

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"

	"github.com/go-zookeeper/zk"
)

func deniedToValues() []denial {
	configuration := func(s *scene, session recipes.Session) recipes.Configuration {
		c := must[recipes.Configuration](s.T)(session.Configuration(s.path))
		must[recipes.Revision](s.T)(c.Set(s.ctx, "key", []byte("x"), recipes.AnyRevision))
		return c
	}
	return []denial{
		{name: "set a key", perms: noWrite, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			c := configuration(s, session)
			return s.path + "/key", func(ctx context.Context) error {
				_, err := c.Set(ctx, "key", nil, recipes.AnyRevision)
				return err
			}
		}},
		{name: "set a new key", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			c := configuration(s, session)
			return s.path, func(ctx context.Context) error {
				_, err := c.Set(ctx, "new/key", nil, recipes.AnyRevision)
				return err
			}
		}},
		{name: "delete a key", perms: noDelete, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			c := configuration(s, session)
			return s.path, func(ctx context.Context) error { return c.Delete(ctx, "key", recipes.AnyRevision) }
		}},
		{name: "count", perms: noWrite, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			c := must[recipes.Counter](s.T)(session.Counter(s.path, recipes.CounterConfig{}))
			must[int64](s.T)(c.Add(s.ctx, 1))
			return s.path, func(ctx context.Context) error { _, err := c.Add(ctx, 1); return err }
		}},
		{name: "count down", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			l := must[recipes.Latch](s.T)(session.Latch(s.path, recipes.LatchConfig{Count: 2}))
			must[int64](s.T)(l.CountDown(s.ctx))
			return s.path, func(ctx context.Context) error { _, err := l.CountDown(ctx); return err }
		}},
		{name: "register for good", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			n := must[recipes.Names](s.T)(session.Names(s.path))
			if err := n.RegisterPersistent(s.ctx, "name", nil); err != nil {
				s.Fatal(err)
			}
			return s.path, func(ctx context.Context) error { return n.RegisterPersistent(ctx, "other", nil) }
		}},
		{name: "unregister", perms: noDelete, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			n := must[recipes.Names](s.T)(session.Names(s.path))
			if err := n.RegisterPersistent(s.ctx, "name", nil); err != nil {
				s.Fatal(err)
			}
			return s.path, func(ctx context.Context) error { return n.Unregister(ctx, "name", 0) }
		}},
		{name: "update a member", perms: noWrite, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			m := must[recipes.Membership](s.T)(must[recipes.Group](s.T)(session.Group(s.path, recipes.GroupConfig{})).Join(s.ctx, nil))
			return m.Znode(), func(ctx context.Context) error { return m.Update(ctx, nil) }
		}},
		{name: "leave a group", perms: noDelete, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			m := must[recipes.Membership](s.T)(must[recipes.Group](s.T)(session.Group(s.path, recipes.GroupConfig{})).Join(s.ctx, nil))
			return s.path, m.Leave
		}},
		{name: "place a barrier", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			if err := barrierAt(s.T, session, s.path+"/made").Set(s.ctx, nil); err != nil {
				s.Fatal(err)
			}
			b := barrierAt(s.T, session, s.path+"/barrier")
			return s.path, func(ctx context.Context) error { return b.Set(ctx, nil) }
		}},
		{name: "remove a barrier", perms: noDelete, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			b := barrierAt(s.T, session, s.path+"/barrier")
			if err := b.Set(s.ctx, nil); err != nil {
				s.Fatal(err)
			}
			return s.path, b.Remove
		}},
		{name: "let members in", perms: noWrite, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			b := must[recipes.DoubleBarrier](s.T)(session.DoubleBarrier(s.path, recipes.DoubleBarrierConfig{Size: 1}))
			must[recipes.Passage](s.T)(b.Enter(s.ctx, nil))
			ready := s.path + "/ready"
			return ready, func(ctx context.Context) error {
				for _, name := range must[[]string](s.T)(children(s, s.path)) {
					if name != "ready" { // the first generation goes
						if err := s.raw.Delete(s.path+"/"+name, -1); err != nil {
							s.Fatal(err)
						}
					}
				}
				_, err := b.Enter(ctx, nil)
				return err
			}
		}},
		{name: "leave a double barrier", perms: noDelete, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			b := must[recipes.DoubleBarrier](s.T)(session.DoubleBarrier(s.path, recipes.DoubleBarrierConfig{Size: 1}))
			return s.path, must[recipes.Passage](s.T)(b.Enter(s.ctx, nil)).Leave
		}},
		{name: "leave a double barrier of Curator's", perms: noDelete, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			b := must[recipes.DoubleBarrier](s.T)(session.DoubleBarrier(s.path, recipes.DoubleBarrierConfig{Size: 1, Dialect: recipes.Curator}))
			return s.path, must[recipes.Passage](s.T)(b.Enter(s.ctx, nil)).Leave
		}},
	}
}

func children(s *scene, path string) ([]string, error) {
	names, _, err := s.raw.Children(path)
	return names, err
}

func deniedToTransactions() []denial {
	begun := func(s *scene, session recipes.Session, variant recipes.Variant) recipes.Transaction {
		tx := must[recipes.Transaction](s.T)(session.Transaction(s.path, recipes.TransactionConfig{Variant: variant}))
		if err := tx.Begin(s.ctx, nil, "1"); err != nil {
			s.Fatal(err)
		}
		return tx
	}
	decided := func(s *scene, session recipes.Session) (recipes.Transaction, recipes.Site) {
		tx := begun(s, session, recipes.CoordinatorOnly)
		site := must[recipes.Site](s.T)(tx.Join(s.ctx, "1"))
		must[recipes.Decision](s.T)(tx.Abort(s.ctx, "no"))
		return tx, site
	}
	return []denial{
		{name: "begin", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			begun(s, session, recipes.CoordinatorOnly)
			tx := must[recipes.Transaction](s.T)(session.Transaction(s.path+"/below", recipes.TransactionConfig{}))
			return s.path, func(ctx context.Context) error { return tx.Begin(ctx, nil, "1") }
		}},
		{name: "abort", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			tx := begun(s, session, recipes.CoordinatorOnly)
			return s.path, func(ctx context.Context) error { _, err := tx.Abort(ctx, "no"); return err }
		}},
		{name: "decide", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			tx := begun(s, session, recipes.CoordinatorOnly)
			if err := must[recipes.Site](s.T)(tx.Join(s.ctx, "1")).Vote(s.ctx, recipes.VoteCommit); err != nil {
				s.Fatal(err)
			}
			return s.path, func(ctx context.Context) error { _, err := tx.Coordinate(ctx); return err }
		}},
		{name: "join", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			tx := begun(s, session, recipes.OwnNodes)
			return s.path, func(ctx context.Context) error { _, err := tx.Join(ctx, "1"); return err }
		}},
		{name: "vote", perms: noWrite, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			site := must[recipes.Site](s.T)(begun(s, session, recipes.CoordinatorOnly).Join(s.ctx, "1"))
			return s.path + "/s_1", func(ctx context.Context) error { return site.Vote(ctx, recipes.VoteCommit) }
		}},
		{name: "done", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			_, site := decided(s, session)
			return s.path, site.Done
		}},
		{name: "done, and forget", perms: noDelete, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			_, site := decided(s, session)
			return s.path, site.Done
		}},
		{name: "forget", perms: noDelete, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			tx, _ := decided(s, session)
			if _, err := s.raw.Create(s.path+"/done_1", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				s.Fatal(err)
			}
			return s.path, tx.Forget
		}},
	}
}
