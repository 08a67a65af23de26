package carry_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
)

// A goroutine sends as many messages as it may, and Rest sends the others. After an error both
// send nothing more.
func TestASenderSendsUpToAnError(t *testing.T) {
	var mu sync.Mutex
	var sent []int
	waiting, rests := []int{1, 2, 3, 4, 5}, 0
	s := carry.Sender[int]{
		Mu:   &mu,
		Next: func() (int, bool) { next := waiting[0]; waiting = waiting[1:]; return next, true },
		Send: func(n int) error {
			mu.Lock() // no other goroutine holds it
			defer mu.Unlock()
			if sent = append(sent, n); n == 4 {
				return errors.New("the connection has ended")
			}
			return nil
		},
		Sent: func(int, error) bool { return len(waiting) > 0 },
		Rest: func(send func()) {
			if rests++; !slices.Equal(sent, []int{1, 2}) {
				t.Errorf("%v were sent before the rest", sent)
			}
			mu.Unlock() // where another goroutine would run
			send()
			mu.Lock()
		},
	}
	mu.Lock()
	defer mu.Unlock()
	for range 2 {
		s.Flush(2)
	}
	if rests != 1 || !slices.Equal(sent, []int{1, 2, 3, 4}) {
		t.Errorf("%v were sent; the rest %d times", sent, rests)
	}
}
