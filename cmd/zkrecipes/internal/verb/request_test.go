package verb

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

type stateOf struct {
	recipes.Session
	connected atomic.Bool
}

func (s *stateOf) State() recipes.State {
	if s.connected.Load() {
		return recipes.Connected
	}
	return recipes.Suspended
}

// A listing of 60,000 contenders takes longer than a request.
func TestAReadMayTakeLongWhileServersAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stateOf{}
		s.connected.Store(true)
		ctx, cancel := whileConnected(t.Context(), s)
		defer cancel()
		time.Sleep(10 * recipes.DefaultOpenTimeout)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Errorf("%v, although the session is connected", context.Cause(ctx))
		}
		s.connected.Store(false)
		time.Sleep(recipes.DefaultOpenTimeout)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), errSilent) {
			t.Errorf("%v without a connection", context.Cause(ctx))
		}
	})
}
