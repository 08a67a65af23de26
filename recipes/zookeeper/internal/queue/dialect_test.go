package queue_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestAQueueInTheDialectOfAnotherLibrary(t *testing.T) {
	type step func(s *zktest.Scene, fifo recipes.Queue, prio recipes.PriorityQueue) (recipes.ElementID, error)
	put := func(data string) step {
		return func(s *zktest.Scene, q recipes.Queue, _ recipes.PriorityQueue) (recipes.ElementID, error) {
			return q.Put(s.Ctx, []byte(data))
		}
	}
	prioritized := func(data string, n int) step {
		return func(s *zktest.Scene, _ recipes.Queue, q recipes.PriorityQueue) (recipes.ElementID, error) {
			return q.Put(s.Ctx, n, []byte(data))
		}
	}
	theirs := func(prefix, data string) step {
		return func(s *zktest.Scene, _ recipes.Queue, _ recipes.PriorityQueue) (recipes.ElementID, error) {
			path := s.Make(s.Path+"/"+prefix, []byte(data), zk.FlagSequence)
			return recipes.ElementID(path[len(s.Path)+1:]), nil
		}
	}
	for _, tt := range []struct {
		dialect recipes.Dialect
		steps   []step
		ids     []recipes.ElementID
		taken   string
	}{
		{recipes.Curator, []step{theirs("qn-", "a"), put("b"), theirs("qn-", "c")}, []recipes.ElementID{"qn-0000000000", "qn-0000000001", "qn-0000000002"}, "abc"},
		{recipes.Kazoo, []step{theirs("entry-100-", "b"), put("c"), theirs("entry-999-", "d"), prioritized("a", 7)},
			[]recipes.ElementID{"entry-100-0000000000", "entry-100-0000000001", "entry-999-0000000002", "entry-007-0000000003"}, "abcd"},
	} {
		zktest.OnBoth(t, func(s *zktest.Scene) {
			session := s.Session()
			q := must.Get(session.Queue(s.Path, recipes.QueueConfig{Dialect: tt.dialect}))(s.T)
			p, err := session.PriorityQueue(s.Path, recipes.QueueConfig{Dialect: tt.dialect})
			if tt.dialect == recipes.Curator {
				s.Is(err, recipes.ErrInvalid)
			}
			for i, do := range tt.steps {
				if id, err := do(s, q, p); err != nil || id != tt.ids[i] {
					s.Fatalf("put %s: %v; want %s", id, err, tt.ids[i])
				}
			}
			if n := must.Get(q.Len(s.Ctx))(s.T); n != len(tt.steps) || len(s.Children(s.Path)) != n {
				s.Errorf("of %d elements, Len counts %d among %q", len(tt.steps), n, s.Children(s.Path))
			}
			taken := string(must.Get(q.Peek(s.Ctx))(s.T).Data)
			for range tt.steps {
				taken += string(must.Get(q.Take(s.Ctx))(s.T).Data)
			}
			if taken != tt.taken[:1]+tt.taken {
				s.Errorf("peeked at and took %q", taken)
			}
			_, err = q.Receive(s.Ctx)
			s.Is(err, recipes.ErrInvalid)
			// Curator creates the path as a container, which is deleted when it is empty.
			must.Do(s, s.Raw.Delete(s.Path, -1))
			if _, err := q.Put(s.Ctx, []byte("again")); err != nil {
				s.Error(err)
			}
			if n := must.Get(q.Len(s.Ctx))(s.T); n != 1 {
				s.Errorf("%d elements after the path was deleted and one was put", n)
			}
			for _, cfg := range []recipes.QueueConfig{{Dialect: tt.dialect, Capacity: 1}, {Dialect: tt.dialect, MaxDeliveries: 1}, {Dialect: "klingon"}} {
				_, err := s.Session().Queue(s.Path, cfg)
				s.Is(err, recipes.ErrInvalid)
			}
		})
	}
}

// The first put of a session lists the queue, so that it does not add an element that the
// queue's consumers ignore.
func TestAPutIsRefusedInAQueueOfAnotherDialect(t *testing.T) {
	for _, tt := range []struct {
		dialect recipes.Dialect
		theirs  string
		want    recipes.ForeignError
	}{
		{recipes.ZooKeeper, "qn-", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "SimpleDistributedQueue"}},
		{recipes.ZooKeeper, "entry-100-", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Queue"}},
		{recipes.Curator, "entry-100-", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Queue"}},
		{recipes.Curator, "queue-", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Queue"}},
		{recipes.Kazoo, "queue-07-", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Queue"}},
		{recipes.Kazoo, "qn-", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "SimpleDistributedQueue"}},
	} {
		zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
			tt.want.Znode = s.Make(s.Path+"/"+tt.theirs, nil, zk.FlagSequence)
			q := must.Get(s.Session().Queue(s.Path, recipes.QueueConfig{Dialect: tt.dialect}))(s.T)
			var got *recipes.ForeignError
			if _, err := q.Put(s.Ctx, nil); !errors.As(err, &got) || *got != tt.want {
				t.Errorf("%s beside %s: %v", tt.dialect, tt.theirs, err)
			}
			if all := s.Children(s.Path); len(all) != 1 {
				t.Errorf("left %q", all)
			}
			must.Do(t, s.Raw.Delete(tt.want.Znode, -1))
			if _, err := q.Put(s.Ctx, nil); err != nil {
				t.Error(err)
			}
		})
	}
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		s.Make(s.Path+"/claims", nil, 0)
		q := must.Get(s.Session().Queue(s.Path, recipes.QueueConfig{Dialect: recipes.Kazoo}))(s.T)
		_, err := q.Put(s.Ctx, nil)
		s.Is(err, recipes.ErrForeign)
	})
}
