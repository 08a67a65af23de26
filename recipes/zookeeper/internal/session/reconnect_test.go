package session_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// The promise of docs/guarantees.md: an old hold survives an outage of two fifths of the timeout.
// The outage begins at every phase of the confirmations. Servers refuse connections, or packets are
// lost. A round trip takes a hundredth of the timeout. The attempts to reconnect were a tenth of the
// timeout apart, or lasted for two seconds. So an outage of a third was too long.
func TestAHoldSurvivesAnOutageOfTwoFifthsOfTheTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second, 30 * time.Second} {
		for _, servers := range [][]string{{"a:1"}, {"a:1", "b:1", "c:1"}} {
			for how, dial := range map[string]session.DialFunc{
				"refusals":     func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") },
				"lost packets": func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
			} {
				t.Run(fmt.Sprintf("%v, %d servers, %s", timeout, len(servers), how), func(t *testing.T) {
					for phase := time.Duration(0); phase < timeout/10; phase += timeout / 110 {
						zktest.Bubble(t, func(t *testing.T) {
							interrupt(t, recipes.SessionConfig{Servers: servers, SessionTimeout: timeout}, dial, 2*timeout+phase, timeout*2/5)
						})
					}
				})
			}
		}
	}
}

// interrupt holds something, and begins an outage after a time. During the outage, the session
// dials with down.
func interrupt(t *testing.T, cfg recipes.SessionConfig, down session.DialFunc, after, lasts time.Duration) {
	srv := zkserver.New(zkserver.Config{MaxSessionTimeout: cfg.SessionTimeout})
	defer srv.Close()
	link := zktest.LinkTo(srv.ServeConn)
	trip := cfg.SessionTimeout / 100
	link.Wrap = func(c net.Conn) net.Conn { return late{c, trip} }
	s := must.Get(session.Open(t.Context(), cfg, func(ctx context.Context, network, address string) (net.Conn, error) {
		if link.Dead.Load() {
			return down(ctx, network, address)
		}
		time.Sleep(trip)
		return link.Dial(ctx, network, address)
	}))(t)
	defer closeNow(s)
	beginHold(t, s)
	defer s.EndHold()
	time.Sleep(after)
	link.Dead.Store(true) // what is sent is lost, and the connection stays open
	time.Sleep(lasts)
	link.Dead.Store(false)
	time.Sleep(cfg.SessionTimeout)
	if err := s.Err(); err != nil {
		t.Errorf("an outage of %v, %v after the hold began: %v", lasts, after, err)
	}
	if s.Counters().Reconnects == 0 {
		t.Error("the session has not reconnected: the case was not met")
	}
}

// late is a connection whose round trips take time.
type late struct {
	net.Conn
	trip time.Duration
}

func (l late) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	time.Sleep(l.trip)
	return n, err
}
