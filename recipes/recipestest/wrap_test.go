package recipestest_test

import (
	"math"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestOrderAcrossTheWrap: the sequence number after 2147483647 is -2147483648, and its contender
// is behind the others. Only the embedded server counts that far: ZooKeeper 3.8.0 stops.
func TestOrderAcrossTheWrap(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			t.Parallel()
			server := embedded(t)
			opener := transport.opener(t)
			if _, err := connect(t, server.Addr()).Create("/wrap", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
			if err := server.SetSequence("/wrap", math.MaxInt32-1); err != nil {
				t.Fatal(err)
			}
			s := open(t, opener, 0, server.Addr())
			h := acquire(t, s, "/wrap")
			var waiters []*waiter
			for range 4 {
				waiters = append(waiters, wait(t, s, "/wrap"))
			}
			l, err := s.Lock("/wrap", recipes.LockConfig{})
			if err != nil {
				t.Fatal(err)
			}
			line, err := l.Contenders(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if last := len(line) - 1; last != len(waiters) || line[0].Sequence != math.MaxInt32-1 || line[last].Sequence >= 0 {
				t.Fatalf("the wait queue is %+v; want %d contenders with numbers that wrap", line, len(waiters)+1)
			}
			for i, c := range line[1:] {
				if c.Token <= line[i].Token {
					t.Fatalf("the wait queue is %+v; want the order of joining", line)
				}
			}
			for i, w := range waiters {
				for _, later := range waiters[i:] {
					if !later.waiting() {
						t.Fatalf("waiter %d or a later one is granted out of turn", i)
					}
				}
				if err := h.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				next := w.granted(t)
				if next.Token() <= h.Token() {
					t.Errorf("token %d after %d", next.Token(), h.Token())
				}
				h = next
			}
		})
	}
}
