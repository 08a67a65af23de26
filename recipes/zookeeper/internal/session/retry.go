package session

import (
	"context"
	"errors"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// throttlePause is the longest pause before a throttled request is sent again.
const throttlePause = 100 * time.Millisecond

// RetryThrottled calls ask again while the server throttles, because it may accept the request
// later. It is used for operations that must finish: a deletion, a read that follows changes, the
// search after a lost reply. Giving up would leave an unknown contender in the wait queue, or a
// reader without news, as long as the session lives. Each call of ask must return when ctx is
// done.
func RetryThrottled[T any](ctx context.Context, s *Session, ask func() (T, error)) (T, error) {
	for {
		answer, err := ask()
		if !s.Throttled(ctx, err) {
			return answer, err
		}
	}
}

// Throttled reports whether err means that the server throttles. If so, it pauses before it
// returns, and returns early when ctx is done. A caller that tries again must use ctx for the
// request too: otherwise it would repeat the request without a pause once ctx is done.
func (s *Session) Throttled(ctx context.Context, err error) bool {
	if !errors.Is(err, recipes.ErrThrottled) {
		return false
	}
	pause := time.NewTimer(s.Chance(throttlePause))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	return true
}
