package znode

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// TestANameThatIsGivenUpAtOnceIsDeletedOnce: who gives up a name just after getting it
// deletes only that registration. The deletion whose reply is lost is not sent again
// when the next session has the name.
func TestANameThatIsGivenUpAtOnceIsDeletedOnce(t *testing.T) {
	srv, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	ctx := t.Context()
	open := func() *session.Session {
		s, err := session.Open(ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}, MaxPacket: 64 << 10}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, next := open(), open()
	defer next.Close(context.Background())
	defer s.Close(context.Background())
	const path = "/names/n"
	made, err := s.CreateNamed(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	srv.RefuseConnections(true)
	srv.CloseConnection(s.ID())
	for e := range s.Events(ctx) {
		if e.State == recipes.Suspended {
			break
		}
	}
	again := make(chan struct{}) // after the deletion whose reply is lost
	deleted, told := false, false
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		switch {
		case r.SessionID != s.ID():
		case r.Op == zkserver.OpDelete && !deleted:
			deleted = true
			return zkserver.Fault{DropReply: true}
		case deleted && !told:
			told = true
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
	if err := s.Sync(ctx, path); err != nil { // which comes after what was sent then
		t.Fatal(err)
	}
	stat, err := next.Stat(ctx, path)
	if err != nil || stat.EphemeralOwner != next.ID() {
		t.Errorf("the next one's registration: %+v, %v", stat, err)
	}
}
