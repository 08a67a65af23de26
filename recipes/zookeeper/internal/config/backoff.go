package config

import (
	"context"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

const (
	firstBackOff = 2 * time.Millisecond
	lastBackOff  = 256 * time.Millisecond
)

// backOff waits before the next attempt, after an attempt has failed because of another
// client's change. It does not poll: only a failed attempt leads to a wait.
func backOff(ctx context.Context, s *session.Session, failures int) error {
	limit := min(lastBackOff, firstBackOff<<min(failures-1, 10))
	over := make(chan struct{})
	timer := time.AfterFunc(s.Chance(limit), func() { close(over) })
	defer timer.Stop()
	return s.Wait(ctx, "waiting to try again", over)
}
