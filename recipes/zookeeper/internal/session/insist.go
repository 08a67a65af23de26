package session

import (
	"context"
	"errors"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// throttlePause is at most how long a session rests that insists.
const throttlePause = 100 * time.Millisecond

// Insist asks again while the server throttles, which refuses nothing for good. It is
// for what has to come to an end: a deletion, a look that keeps up with changes, the
// search for what a creation without a reply has made. Giving up there would leave an
// unknown contender in line, or a reader without news, as long as the session lives.
// Each call of ask must end when ctx ends.
func Insist[T any](ctx context.Context, s *Session, ask func() (T, error)) (T, error) {
	for {
		answer, err := ask()
		if !s.Throttled(ctx, err) {
			return answer, err
		}
	}
}

// Throttled reports whether err says that the server throttles, after a moment's rest,
// which ends with ctx. Whoever asks again then must ask with ctx too.
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
