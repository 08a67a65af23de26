package session

import "context"

// detached runs create, and stops waiting for it when ctx is done or the session is lost. Then
// create continues, and undo reverts what it creates. create must not return before its outcome
// is known, unless the session has ended. end, if not nil, is called when both are finished.
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
			// The caller has returned or will return.
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
