package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// go-zookeeper hung for good when it could not write the credentials that it
// gives again on a new connection, and with it whoever closed the session.
func TestCredentialsThatCannotBeWrittenAreGivenOnTheNextConnection(t *testing.T) {
	srv := embedded(t)
	cfg := to(srv)
	cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"}
	var connections, failures atomic.Int32
	s, err := session.Open(bounded(t), cfg, func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil || connections.Add(1) != 2 {
			return c, err
		}
		return &authless{c, &failures}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(s) })
	srv.CloseConnection(s.ID())
	// Not before the third connection: the second cannot be used.
	for connections.Load() < 3 {
		gone, err := s.Connected(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if connections.Load() < 2 {
			select {
			case <-gone:
			case <-s.Done():
				t.Fatal(s.Err())
			}
		}
	}
	if _, err := s.Children(bounded(t), "/"); err != nil {
		t.Fatal(err)
	}
	if failures.Load() != 1 {
		t.Fatalf("%d writes failed: the case was not met", failures.Load())
	}
	if err := s.Close(bounded(t)); err != nil {
		t.Error(err)
	}
}

// authless cannot write credentials.
type authless struct {
	net.Conn
	failures *atomic.Int32
}

func (c *authless) Write(frame []byte) (int, error) {
	if len(frame) >= 12 && zkserver.Op(int32(binary.BigEndian.Uint32(frame[8:]))) == zkserver.OpAuth {
		c.failures.Add(1)
		return 0, errors.New("not today")
	}
	return c.Conn.Write(frame)
}
