package session_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// threeServers plays three servers: "led", which is killed, "cut", which does not answer this client,
// and "left". They elect a leader for a time after the kill.
type threeServers struct {
	srv    *zkserver.Server
	hidden bool // packets to "cut" are dropped. Otherwise it accepts connections

	mu      sync.Mutex
	killed  bool
	elected time.Time
}

func (e *threeServers) dial(ctx context.Context, _, address string) (net.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case address == "cut:2181" && e.hidden:
		e.mu.Unlock()
		<-ctx.Done()
		e.mu.Lock()
		return nil, ctx.Err()
	case address == "cut:2181":
		client, server := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, server) }()
		return client, nil
	case !e.killed && address == "led:2181", e.killed && address == "left:2181" && time.Now().After(e.elected):
		return pipe(e.srv), nil
	}
	return nil, errors.New("refused")
}

// A server is killed, and a second one answers nothing, or a firewall hides it. A session with a
// timeout of four seconds finds the third in time, in whatever order it tries them. Each attempt
// took two seconds.
func TestServersThatAnswerNothingDoNotEndASession(t *testing.T) {
	for range 20 { // each session has its own order
		for _, hidden := range []bool{false, true} {
			zktest.Bubble(t, func(t *testing.T) {
				e := &threeServers{srv: zkserver.New(zkserver.Config{}), hidden: hidden}
				defer e.srv.Close()
				s := must.Get(session.Open(t.Context(), recipes.SessionConfig{
					Servers: []string{"led:2181", "cut:2181", "left:2181"}, SessionTimeout: 4 * time.Second,
				}, e.dial))(t)
				defer closeNow(s)
				e.mu.Lock()
				e.killed, e.elected = true, time.Now().Add(2200*time.Millisecond)
				e.mu.Unlock()
				gone := must.Get(s.Connected(t.Context()))(t)
				e.srv.CloseConnection(s.ID())
				<-gone
				begun := time.Now()
				if _, err := s.Connected(t.Context()); err != nil {
					t.Errorf("hidden %t: %v, after %v", hidden, err, time.Since(begun))
				}
			})
		}
	}
}
