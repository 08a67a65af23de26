package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// gRPC refuses the message before it is read, so the stream has no reason for it. The time is
// virtual: it advances only if the call waits.
func TestMessageThatIsTooLargeIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(4<<10)))
		s := l.open(t, 0)
		asked := time.Now()
		_, err := lock(t, s, recipes.LockConfig{Data: make([]byte, 8<<10)}).Acquire(ctx(t))
		matches(t, err, recipes.ErrTooLarge)
		if d := time.Since(asked); d != 0 {
			t.Errorf("the answer took %v", d)
		}
		acquire(t, s) // the refused call left nothing behind
	})
}
