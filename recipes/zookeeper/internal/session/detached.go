package session

import "context"

// detached runs create, and gives up when ctx ends or the session is lost. Then
// create goes on, and what it made is undone. It must not return before its
// outcome is known, unless the session is over. end, if not nil, is called when
// nothing of that goes on any more.
func detached[T any](ctx context.Context, s *Session, what string, create func(life context.Context) (T, error), undo func(context.Context, T), end func()) (T, error) {
	type result struct {
		made T
		err  error
	}
	var zero T
	done := make(chan result)
	if end == nil {
		end = func() {}
	}
	started := s.Background(func(life context.Context) {
		defer end()
		made, err := create(life)
		select {
		case done <- result{made, err}:
		case <-ctx.Done():
			// The caller has gone, or is about to.
			if err == nil {
				undo(life, made)
			}
		case <-life.Done():
		}
	})
	if !started {
		end()
		return zero, s.Err()
	}
	select {
	case r := <-done:
		return r.made, r.err
	case <-s.Done():
		return zero, s.Err()
	case <-ctx.Done():
		return zero, s.Interrupted(what, ctx)
	}
}
