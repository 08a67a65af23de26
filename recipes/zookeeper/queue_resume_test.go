package zookeeper_test

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Ephemeral elements live as long as their session, in whichever process that is. A
// claim that nobody has taken up goes, also when a queue of that kind has it.
func TestEphemeralElementsStayInAResumedSession(t *testing.T) {
	everywhere(t, func(t *testing.T, addr, path string) {
		for _, dialect := range []recipes.Dialect{recipes.DefaultDialect, recipes.Curator, recipes.Kazoo} {
			path := path + "-" + string(dialect)
			ctx, s, other := bounded(t), openAt(t, addr), openAt(t, addr)
			cfg := recipes.QueueConfig{Ephemeral: true, Dialect: dialect}
			putting := must[recipes.Queue](t)(s.Queue(path, cfg))
			if _, err := putting.PutMany(ctx, []byte("1"), []byte("2")); err != nil {
				t.Fatal(err)
			}
			if dialect != recipes.Curator { // whose queue has no priorities
				if _, err := must[recipes.PriorityQueue](t)(s.PriorityQueue(path+"-priority", cfg)).Put(ctx, 7, []byte("3")); err != nil {
					t.Fatal(err)
				}
			}
			if dialect == recipes.DefaultDialect {
				must[recipes.Delivery](t)(putting.Receive(ctx))
			}
			must[recipes.Hold](t)(must[recipes.Lock](t)(s.Lock(path+"-lock", recipes.LockConfig{})).Acquire(ctx))

			s = move(t, addr, s)
			if err := s.(movable).DropRest(ctx); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"1", "2"} {
				e := must[recipes.Element](t)(must[recipes.Queue](t)(other.Queue(path, cfg)).Take(ctx))
				if string(e.Data) != want {
					t.Errorf("%s: %s was taken", dialect, e.Data)
				}
			}
			if dialect != recipes.Curator {
				e := must[recipes.Element](t)(must[recipes.PriorityQueue](t)(other.PriorityQueue(path+"-priority", cfg)).Take(ctx))
				if string(e.Data) != "3" {
					t.Errorf("%s: %s was taken", dialect, e.Data)
				}
			}
			must[recipes.Hold](t)(must[recipes.Lock](t)(other.Lock(path+"-lock", recipes.LockConfig{})).TryAcquire(ctx))
			if _, err := must[recipes.Queue](t)(s.Queue(path, cfg)).Put(ctx, []byte("4")); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := must[recipes.Queue](t)(other.Queue(path, cfg)).Peek(ctx); !errors.Is(err, recipes.ErrEmpty) {
				t.Errorf("%s: after the session's end: %v", dialect, err)
			}
		}
	})
}
