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
