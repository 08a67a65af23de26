package session

import (
	"context"
	"errors"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// throttlePause is at most how long a session rests that insists.
const throttlePause = 100 * time.Millisecond

// insist asks again while the server throttles. It is for what has to come to an end: a
// creation whose reply was lost and that has to be found, a deletion. Giving up
// there leaves a contender in line that nobody knows of, as long as the session lives.
func insist[T any](life context.Context, s *Session, ask func() (T, error)) (T, error) {
	for {
		answer, err := ask()
		if !s.Throttled(life, err) {
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
