package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// sever cuts the session's connection, keeps it cut, and returns when the
// session knows.
func (f *fixture) sever(s recipes.Session) {
	f.Helper()
	f.proxy.sever(s.ID())
	f.awaitState(s, recipes.Suspended)
}

// reconnect ends sever.
func (f *fixture) reconnect(s recipes.Session) {
	f.Helper()
	f.proxy.restore(s.ID())
	f.awaitState(s, recipes.Connected)
}

func (f *fixture) awaitState(s recipes.Session, want recipes.State) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	for e := range s.Events(ctx) {
		if e.State == want {
			return
		}
	}
	f.Fatalf("the session is %v; want %v", s.State(), want)
}

// expire has the server expire the session, and waits until it knows.
func (f *fixture) expire(s recipes.Session) {
	f.Helper()
	f.must(f.proxy.expire(s.ID()))
	f.await(s.Done(), "the loss of the session")
}
