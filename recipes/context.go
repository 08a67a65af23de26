package recipes

import (
	"context"
	"time"
)

// WithHold returns a context that also ends when the grant does, with the cause g.Err():
// [context.Cause] returns an error that matches ErrNotHeld. Pass it to what must stop when the
// lock is lost or released. It does not stop code that ignores its context, and code that was
// paused continues until it checks the context: protect writes by Grant.Write or by the token.
//
// Calling stop ends the context and frees its resources. It does not release the grant. If the
// grant has ended already, the context has ended too. WithHold calls Done, which sets a watch.
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

// OnDanger calls warn when less than left remains until g.ValidUntil: the proof has not been
// renewed for a long time, and the grant ends unless a server renews it soon. There is still time
// to pause, or to raise an alarm. It calls warn again if the proof was renewed and has become as
// short again. While servers answer, at least half of the session's timeout remains, so a third of
// the timeout is a good choice. A loss for another reason, such as a deletion of the znode, comes
// without a warning.
//
// warn is called in a goroutine of OnDanger, one call at a time. The goroutine ends with the grant, or
// after stop, which does not wait for a call under way. OnDanger calls Done, which sets a watch.
//
// Source: none. It is the SessionMonitor of the lock client of DynamoDB.
func OnDanger(g Grant, left time.Duration, warn func()) (stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	done := g.Done()
	go func() {
		defer stop()
		timer := time.NewTimer(0)
		defer timer.Stop()
		for warned := false; ; {
			select {
			case <-timer.C:
			case <-done:
				return
			case <-ctx.Done():
				return
			}
			rest := time.Until(g.ValidUntil()) - left
			switch {
			case rest > 0:
				warned = false
			case !warned:
				warned = true
				warn()
				fallthrough
			default: // check whether it was renewed
				rest = left / 8
			}
			timer.Reset(max(rest, time.Millisecond))
		}
	}()
	return stop
}
