package session_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// slow is a connection on which each byte takes some time to arrive.
type slow struct {
	net.Conn
	each time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p[:min(len(p), 512)])
	time.Sleep(time.Duration(n) * s.each) // virtual
	return n, err
}

// A large reply over a slow link is awaited as long as bytes arrive.
func TestAReplyThatTakesLongToArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout, nodes = 10 * time.Second, 400 // of about 58 bytes each in a listing
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		dial := func(context.Context, string, string) (net.Conn, error) {
			return &slow{pipe(srv), timeout * 8 / 10 / (nodes * 58)}, nil
		}
		s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: timeout, MaxPacket: 64 << 10}, dial))(t)
		defer closeNow(s)
		for range nodes {
			must.Get(s.CreateProtected(t.Context(), "/many", "lock-", nil))(t)
		}
		for name, list := range map[string]func() ([]string, error){
			"through go-zookeeper": func() ([]string, error) { return s.Children(t.Context(), "/many") },
			"past go-zookeeper":    func() ([]string, error) { names, _, err := s.List(t.Context(), "/many"); return names, err },
		} {
			began := time.Now()
			if names, err := list(); err != nil || len(names) != nodes {
				t.Errorf("%s: %d names, %v", name, len(names), err)
			}
			if took := time.Since(began); took < timeout*2/3 {
				t.Errorf("%s: took %v: the case was not met", name, took)
			}
		}
		if n := s.Counters().Reconnects; n != 0 {
			t.Errorf("%d reconnects", n)
		}
	})
}
