package zookeeper_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"

	"github.com/go-zookeeper/zk"
)

const (
	noWrite  = zk.PermAll &^ zk.PermWrite
	noCreate = zk.PermAll &^ zk.PermCreate
	noDelete = zk.PermAll &^ zk.PermDelete
)

// denial is something that somebody does who may not change a znode.
type denial struct {
	name  string
	perms int32
	// prepare returns the znode of which the permissions are taken, and what is then done.
	prepare func(s *scene, session recipes.Session) (znode string, act func(context.Context) error)
	// after looks at what is left, if it is not nil.
	after func(s *scene, srv *zkserver.Server)
}

// A change that the server does not allow is said, at once, and not taken for one that
// another client was faster with: that would be tried for ever.
func TestWhatTheServerDoesNotAllowIsSaid(t *testing.T) {
	for _, d := range slices.Concat(deniedToQueues(), deniedToLocks(), deniedToValues(), deniedToTransactions()) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			onEmbedded(t, func(s *scene, srv *zkserver.Server) {
				s.T = t
				session := s.session()
				znode, act := d.prepare(s, session)
				if _, err := s.raw.SetACL(znode, zk.WorldACL(d.perms), -1); err != nil {
					t.Fatalf("%s: %v", znode, err)
				}
				ctx, cancel := context.WithTimeout(s.ctx, deadline/2)
				defer cancel()
				if err := act(ctx); !errors.Is(err, recipes.ErrAccessDenied) {
					t.Errorf("told %v", err)
				}
				if d.after != nil {
					d.after(s, srv)
				}
			})
		})
	}
}

// filled is a queue with one element, and the znode of that.
func (s *scene) filled(session recipes.Session, cfg recipes.QueueConfig) (recipes.Queue, string) {
	s.Helper()
	q := must[recipes.Queue](s.T)(session.Queue(s.path, cfg))
	id := must[recipes.ElementID](s.T)(q.Put(s.ctx, []byte("x")))
	return q, s.path + "/" + string(id)
}

// unclaimed checks that no claim is left, which would keep the element from everybody.
func unclaimed(s *scene, srv *zkserver.Server) {
	s.Helper()
	for ctx := s.ctx; ; {
		claims := 0
		for _, n := range srv.Tree() {
			if strings.HasPrefix(n.Path, s.path+"/claims/") {
				claims++
			}
		}
		if claims == 0 {
			return
		}
		select {
		case <-ctx.Done():
			s.Errorf("%d claims are left", claims)
			return
		case <-time.After(time.Millisecond): // asks again: it is deleted in the background
		}
	}
}

func deniedToQueues() []denial {
	received := func(s *scene, session recipes.Session, cfg recipes.QueueConfig) (recipes.Delivery, string) {
		q, element := s.filled(session, cfg)
		return must[recipes.Delivery](s.T)(q.Receive(s.ctx)), element
	}
	return []denial{
		{name: "take", perms: noDelete, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			q, _ := s.filled(session, recipes.QueueConfig{})
			return s.path, func(ctx context.Context) error { _, err := q.Take(ctx); return err }
		}},
		{name: "put", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			q, _ := s.filled(session, recipes.QueueConfig{})
			return s.path, func(ctx context.Context) error { _, err := q.Put(ctx, nil); return err }
		}},
		{name: "put into a bounded queue", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			q, _ := s.filled(session, recipes.QueueConfig{Capacity: 5})
			return s.path, func(ctx context.Context) error { _, err := q.Put(ctx, nil); return err }
		}},
		{name: "put into a queue of kazoo's", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			q, _ := s.filled(session, recipes.QueueConfig{Dialect: recipes.Kazoo})
			return s.path, func(ctx context.Context) error { _, err := q.Put(ctx, nil); return err }
		}},
		{name: "receive an element that may not be written", perms: noWrite, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			q, element := s.filled(session, recipes.QueueConfig{})
			return element, func(ctx context.Context) error { _, err := q.Receive(ctx); return err }
		}},
		{name: "receive without the right to claim", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			d, _ := received(s, session, recipes.QueueConfig{}) // makes the parent of claims
			if err := d.Return(s.ctx); err != nil {
				s.Fatal(err)
			}
			q := must[recipes.Queue](s.T)(session.Queue(s.path, recipes.QueueConfig{}))
			return s.path + "/claims", func(ctx context.Context) error { _, err := q.Receive(ctx); return err }
		}},
		{name: "acknowledge", perms: noDelete, after: unclaimed, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			d, _ := received(s, session, recipes.QueueConfig{})
			return s.path, d.Ack
		}},
		{name: "bury", perms: noDelete, after: unclaimed, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			d, _ := received(s, session, recipes.QueueConfig{MaxDeliveries: 1})
			return s.path, d.Return
		}},
		{name: "bury what another has received too often", perms: noDelete, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			d, _ := received(s, session, recipes.QueueConfig{})
			if err := d.Return(s.ctx); err != nil {
				s.Fatal(err)
			}
			q := must[recipes.Queue](s.T)(s.session().Queue(s.path, recipes.QueueConfig{MaxDeliveries: 1}))
			return s.path, func(ctx context.Context) error { _, err := q.Receive(ctx); return err }
		}},
	}
}

func deniedToLocks() []denial {
	priority := func(s *scene, session recipes.Session) recipes.PriorityLock {
		l := must[recipes.PriorityLock](s.T)(session.PriorityLock(s.path, recipes.PriorityLockConfig{Revocable: true, Grace: time.Millisecond}))
		if err := must[recipes.PriorityHold](s.T)(l.AcquireRead(s.ctx)).Release(s.ctx); err != nil { // makes the path
			s.Fatal(err)
		}
		return l
	}
	written := func(s *scene, session recipes.Session) (recipes.SharedLock, recipes.SharedHold) {
		l := must[recipes.SharedLock](s.T)(session.SharedLock(s.path, recipes.SharedLockConfig{Revocable: true, Grace: time.Millisecond}))
		return l, must[recipes.SharedHold](s.T)(l.AcquireWrite(s.ctx))
	}
	return []denial{
		{name: "claim of a writer, path", perms: noWrite, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			l := priority(s, session)
			return s.path, func(ctx context.Context) error { _, err := l.AcquireWrite(ctx); return err }
		}},
		{name: "claim of a reader, waiting znode", perms: noDelete, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			l := priority(s, session)
			return s.path, func(ctx context.Context) error { _, err := l.AcquireRead(ctx); return err }
		}},
		{name: "hand-off, path", perms: noWrite, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			h := must[recipes.PriorityHold](s.T)(priority(s, session).AcquireWrite(s.ctx))
			places := make(chan recipes.Place, 1)
			behind := must[recipes.PriorityLock](s.T)(s.session().PriorityLock(s.path, recipes.PriorityLockConfig{Joined: func(p recipes.Place) { places <- p }}))
			ctx, cancel := context.WithCancel(s.ctx)
			s.Cleanup(cancel)
			go behind.AcquireWrite(ctx)
			successor := <-places
			return s.path, func(ctx context.Context) error {
				err := h.HandOff(ctx, successor.Znode)
				if lost := h.Err(); lost != nil {
					s.Errorf("what was not handed off is held: %v", lost)
				}
				done := h.Done()
				if err := s.raw.Delete(h.Znode(), -1); err != nil {
					s.Error(err)
				}
				<-done
				if lost := h.Err(); !errors.Is(lost, recipes.ErrRemoved) {
					s.Errorf("then another client deletes its znode, and it is told %v", lost)
				}
				return err
			}
		}},
		{name: "revoke", perms: noWrite, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			l, h := written(s, session)
			return h.Znode(), func(ctx context.Context) error { return l.Revoke(ctx, h.Znode()) }
		}},
		{name: "revoke by force", perms: noDelete, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			l, h := written(s, session)
			return s.path, func(ctx context.Context) error { return l.RevokeForced(ctx, h.Znode()) }
		}},
		{name: "downgrade", perms: noWrite, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			_, h := written(s, session)
			return h.Znode(), h.Downgrade
		}},
		{name: "agree on permits", perms: noWrite, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			if _, err := s.raw.Create(s.path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				s.Fatal(err)
			}
			l := must[recipes.Semaphore](s.T)(session.Semaphore(s.path, recipes.SemaphoreConfig{Permits: 2}))
			return s.path, func(ctx context.Context) error { _, err := l.Acquire(ctx); return err }
		}},
		{name: "agree on permits with kazoo", perms: noWrite, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			if _, err := s.raw.Create(s.path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				s.Fatal(err)
			}
			l := must[recipes.Semaphore](s.T)(session.Semaphore(s.path, recipes.SemaphoreConfig{Permits: 2, Dialect: recipes.Kazoo}))
			return s.path, func(ctx context.Context) error { _, err := l.Acquire(ctx); return err }
		}},
		{name: "acknowledge an election", perms: noCreate, prepare: func(s *scene, session recipes.Session) (string, func(context.Context) error) {
			e := must[recipes.Election](s.T)(session.Election(s.path, recipes.ElectionConfig{}))
			leads := must[recipes.Leadership](s.T)(e.Campaign(s.ctx, nil))
			if err := leads.Acknowledge(s.ctx, nil); err != nil { // makes the parent
				s.Fatal(err)
			}
			if err := leads.Resign(s.ctx); err != nil {
				s.Fatal(err)
			}
			leads = must[recipes.Leadership](s.T)(e.Campaign(s.ctx, nil))
			return s.path + "/acks", func(ctx context.Context) error { return leads.Acknowledge(ctx, nil) }
		}},
	}
}

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
