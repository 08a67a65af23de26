package znode

import (
	"context"
	"errors"
	"reflect"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Observe sends view's result for the selected znodes: the current value first, then each value
// that differs from the last one. A slow reader may miss values in between, but never the
// latest. The channel is closed when ctx is done, the session is lost, or reading fails. A
// failure is logged with the root's path under the key what.
func Observe[T any](ctx context.Context, s *session.Session, selection Selection, what string, view func(Nodes) T) (<-chan T, error) {
	m := &mirror{session: s, Selection: selection, watch: true, wake: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(ctx)
	if err := m.update(ctx); err != nil {
		cancel()
		m.watching.Wait()
		return nil, err
	}
	out := make(chan T)
	started := m.session.Background(func(life context.Context) {
		defer close(out)
		defer m.watching.Wait()
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		send(ctx, m, what, view, out)
	})
	if !started {
		cancel()
		m.watching.Wait()
		return nil, m.session.Err()
	}
	return out, nil
}

// send offers the latest value until a reader receives it, and updates the mirror at the same
// time.
func send[T any](ctx context.Context, m *mirror, what string, view func(Nodes) T, out chan<- T) {
	value := view(m.selected())
	offer := out // nil after a reader has received the current value
	for {
		select {
		case offer <- value:
			offer = nil
			continue
		case <-m.wake:
		case <-m.disconnected:
		case <-ctx.Done():
			return
		}
		_, err := session.RetryThrottled(ctx, m.session, func() (struct{}, error) { return struct{}{}, m.update(ctx) })
		if err != nil {
			// The session itself reports its loss.
			if ctx.Err() == nil && !errors.Is(err, recipes.ErrSessionLost) {
				m.session.Log().Error("watching ended", what, m.Root, "error", err)
			}
			return
		}
		if next := view(m.selected()); !reflect.DeepEqual(next, value) {
			value, offer = next, out
		}
	}
}
