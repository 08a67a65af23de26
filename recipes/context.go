package recipes

import "context"

// WithHold returns a context that also ends when the grant does, with the cause g.Err():
// [context.Cause] returns an error that matches ErrNotHeld. Pass it to what must stop when the
// lock is lost or released. It does not stop code that ignores its context, and code that was
// paused runs on until it looks: protect writes by Grant.Write or by the token.
//
// Calling stop ends the context and frees its resources. It does not release the grant. If the
// grant is over already, the context is too. WithHold calls Done, which sets a watch.
//
// Source: none. etcd and redsync users ask for it (etcd#6127, redsync#72).
func WithHold(ctx context.Context, g Grant) (held context.Context, stop context.CancelFunc) {
	held, cancel := context.WithCancelCause(ctx)
	stop = func() { cancel(nil) }
	done := g.Done()
	if err := g.Err(); err != nil {
		cancel(err)
		return held, stop
	}
	go func() {
		select {
		case <-done:
			cancel(g.Err())
		case <-held.Done():
		}
	}()
	return held, stop
}
