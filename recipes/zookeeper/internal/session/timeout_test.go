package session_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// PITFALLS 62: the timer was set with the old timeout.
func TestAResumedSessionThatIsGrantedASmallerTimeoutIsLostByThat(t *testing.T) {
	for name, holds := range map[string]bool{"that holds something": true, "that holds nothing": false} {
		t.Run("of a session "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const before, after = 30 * time.Second, 4 * time.Second
				srv := zkserver.New(zkserver.Config{MaxSessionTimeout: before})
				defer srv.Close()
				var down atomic.Bool
				dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
					if down.Load() {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return pipe(srv), nil
				}
				s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: before, MaxPacket: 64 << 10}, dial))(t)
				defer closeNow(s)
				if holds {
					beginHold(t, s)
					defer s.EndHold()
				}
				time.Sleep(before) // virtual
				srv.SetMaxSessionTimeout(after)
				cutAndWait(t, srv, s)
				if got := s.Timeout(); got != after {
					t.Errorf("Timeout is %v; the server has granted %v", got, after)
				}
				time.Sleep(2 * after)
				if err := s.Err(); err != nil {
					t.Fatalf("lost though all is well: %v", err)
				}
				down.Store(true)
				srv.CloseAllConnections()
				cut := time.Now()
				select {
				case <-s.Done():
				case <-time.After(2 * before):
					t.Fatal("never lost")
				}
				if took := time.Since(cut); took >= after {
					t.Errorf("lost %v after the server could not be reached any more; the timeout is %v", took, after)
				}
				if err := s.Err(); !errors.Is(err, recipes.ErrDeadline) {
					t.Errorf("lost with %v", err)
				}
			})
		})
	}
}
