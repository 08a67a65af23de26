package session_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// The error of a session that is lost by its deadline says for how long no server has answered.
// With a hold, it also says for how long the leader is not known to have heard of the session:
// the loss counts from there.
func TestWhyASessionIsLostByItsClock(t *testing.T) {
	for _, holds := range []bool{false, true} {
		onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
			if holds {
				beginHold(t, s)
			}
			time.Sleep(s.Timeout())
			srv.Freeze(true)
			defer srv.Freeze(false)
			<-s.Done()
			err := s.Err()
			if !errors.Is(err, recipes.ErrDeadline) || !strings.Contains(err.Error(), "no server has answered for ") {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "the leader is not known to have heard of the session for ") != holds {
				t.Errorf("holding something: %v, and got %v", holds, err)
			}
			if s.State() != recipes.Lost {
				t.Errorf("its state is %v", s.State())
			}
		})
	}
}
