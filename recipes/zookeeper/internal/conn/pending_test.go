package conn

import (
	"strconv"
	"testing"
)

// BenchmarkAnswers answers requests with n in flight: in order, and out of order, as when two
// goroutines send at the same time. The time per answer must not grow with n.
func BenchmarkAnswers(b *testing.B) {
	for _, n := range []int{10, 100, 10_000} {
		for _, at := range []int{0, 1, 8} {
			b.Run("in-flight="+strconv.Itoa(n)+"/at="+strconv.Itoa(at), func(b *testing.B) {
				c := &Conn{}
				for range n {
					c.pending = append(c.pending, sent{})
				}
				for b.Loop() {
					c.pending = append(c.pending, sent{})
					c.answered(at)
				}
			})
		}
	}
}

// Whatever the order of the answers, the requests without one remain in order.
func TestAnswersLeaveTheOthersInOrder(t *testing.T) {
	for _, n := range []int{1, 2, 31, 32, 33, 100} {
		for _, at := range []int{0, n / 2, n - 1} {
			c := &Conn{}
			for i := range n {
				c.pending = append(c.pending, sent{xid: int32(i + 1)})
			}
			array := c.pending
			c.answered(at)
			want := int32(0)
			for _, s := range c.pending {
				if want++; want == int32(at+1) {
					want++
				}
				if s.xid != want {
					t.Fatalf("%d in flight, %d answered: %d; want %d", n, at, s.xid, want)
				}
			}
			if len(c.pending) != n-1 {
				t.Errorf("%d in flight, one answered: %d remain", n, len(c.pending))
			}
			if n == 100 && array[0] != (sent{}) {
				t.Error("the slot of the answered request keeps its batch")
			}
		}
	}
}
