package znode

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

const path = "/names/n"

// two opens two sessions that want the name at path, one after the other.
func two(t *testing.T) (srv *zkserver.Server, s, next *session.Session) {
	srv = must.Get(zkserver.Listen(zkserver.Config{}))(t)
	t.Cleanup(func() { srv.Close() })
	open := func() *session.Session {
		s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{srv.Addr()}, MaxPacket: 64 << 10}, nil))(t)
		t.Cleanup(func() { s.Close(context.Background()) })
		return s
	}
	return srv, open(), open()
}

// TestANameThatIsGivenUpAtOnceIsDeletedOnce: a caller that gives up a name just after creating
// it deletes only that registration. A deletion whose reply is lost is not sent again when the
// next session has the name.
func TestANameThatIsGivenUpAtOnceIsDeletedOnce(t *testing.T) {
	srv, s, next := two(t)
	ctx := t.Context()
	made := must.Get(s.CreateNamed(ctx, path, nil))(t)
	srv.RefuseConnections(true)
	srv.CloseConnection(s.ID())
	for e := range s.Events(ctx) {
		if e.State == recipes.Suspended {
			break
		}
	}
	again := make(chan struct{}) // after the deletion whose reply is lost
	deleted, taken := false, false
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		switch {
		case r.SessionID != s.ID():
		case r.Op == zkserver.OpDelete && !deleted:
			deleted = true
			return zkserver.Fault{DropReply: true}
		case deleted && !taken:
			taken = true
			if _, err := next.CreateNamed(ctx, path, nil); err != nil {
				t.Error(err)
			}
			close(again)
		}
		return zkserver.Fault{}
	})
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := watchOver(ended, s, path, made); !errors.Is(err, context.Canceled) {
		t.Errorf("watched with %v", err)
	}
	srv.RefuseConnections(false)
	<-again
	if err := s.Sync(ctx, path); err != nil { // after all requests that were sent before
		t.Fatal(err)
	}
	stat, err := next.Stat(ctx, path)
	if err != nil || stat.EphemeralOwner != next.ID() {
		t.Errorf("the next session's registration: %+v, %v", stat, err)
	}
}

// TestAnUpdateOfAZnodeThatIsRemovedIsKnown: once the znode is deleted, it does not matter whether
// the data were written.
func TestAnUpdateOfAZnodeThatIsRemovedIsKnown(t *testing.T) {
	srv, s, next := two(t)
	ctx := t.Context()
	made := must.Get(s.CreateNamed(ctx, path, nil))(t)
	e := must.Get(watchOver(ctx, s, path, made))(t)
	lost, removed := false, false
	srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
		switch {
		case r.SessionID != s.ID():
		case r.Op == zkserver.OpSetData && !lost:
			lost, f.DropReply = true, true
		case lost && !removed:
			removed = true
			must.Report(t, next.DeleteOnce(ctx, path, recipes.AnyVersion))
		}
		return f
	})
	if err := e.Update(ctx, []byte("x")); !removed || !errors.Is(err, recipes.ErrRemoved) || errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Error(err)
	}
}
