package session_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// clogged is a connection to a server. While the gate is closed, the server reads nothing and no
// buffer has room.
type clogged struct {
	net.Conn
	gate    atomic.Pointer[chan struct{}]
	over    chan struct{}
	closing sync.Once
}

func (c *clogged) Write(b []byte) (int, error) {
	select {
	case <-*c.gate.Load():
		return c.Conn.Write(b)
	case <-c.over:
		return 0, io.ErrClosedPipe
	}
}

func (c *clogged) Close() error {
	c.closing.Do(func() { close(c.over) })
	return c.Conn.Close()
}

// No call outlasts its context: neither if the server reads nothing, nor if the removal of a watch
// that the call sets again takes long, because the server throttles.
func TestNoCallOutlastsItsContext(t *testing.T) {
	const patience = time.Second
	for _, stuck := range []string{"writing", "a removal"} {
		for name, use := range map[string]func(context.Context, *session.Session, session.BareZnode) error{
			"CreateBare": func(ctx context.Context, s *session.Session, _ session.BareZnode) error {
				_, _, err := s.CreateBare(ctx, "/line", "lock-", nil, true, s.EnsureQueuePath)
				return err
			},
			"CreateProtected": func(ctx context.Context, s *session.Session, _ session.BareZnode) error {
				_, err := s.CreateProtected(ctx, "/line", "lock-", nil)
				return err
			},
			"Predecessor": func(ctx context.Context, s *session.Session, own session.BareZnode) error {
				_, _, _, err := s.Predecessor(ctx, own, "/line")
				return err
			},
			"BareW": func(ctx context.Context, s *session.Session, own session.BareZnode) error {
				_, err := s.BareW(ctx, own)
				return err
			},
			"GetW": func(ctx context.Context, s *session.Session, _ session.BareZnode) error {
				_, _, err := s.GetW(ctx, "/line")
				return err
			},
			"ExistsW": func(ctx context.Context, s *session.Session, _ session.BareZnode) error {
				_, _, err := s.ExistsW(ctx, "/line")
				return err
			},
			"ChildrenW": func(ctx context.Context, s *session.Session, _ session.BareZnode) error {
				_, _, err := s.ChildrenW(ctx, "/line")
				return err
			},
			"SetOnce": func(ctx context.Context, s *session.Session, _ session.BareZnode) error {
				_, err := s.SetOnce(ctx, "/line", nil, -1)
				return err
			},
			"BeginHold": func(ctx context.Context, s *session.Session, _ session.BareZnode) error {
				time.Sleep(patience / 2)
				return s.BeginHold(ctx)
			},
			"Handoff": func(ctx context.Context, s *session.Session, own session.BareZnode) error {
				s.Handoff(ctx, own)
				<-ctx.Done()
				return ctx.Err()
			},
			"a proof": func(ctx context.Context, s *session.Session, _ session.BareZnode) error {
				s.PrepareProof()
				<-ctx.Done()
				return ctx.Err()
			},
			"GetOwn": func(ctx context.Context, s *session.Session, _ session.BareZnode) error {
				_, err := s.GetOwn(ctx, "/line")
				return err
			},
			"Create": func(ctx context.Context, s *session.Session, _ session.BareZnode) error {
				return s.Create(ctx, "/new", nil)
			},
			"Commit": func(ctx context.Context, s *session.Session, _ session.BareZnode) error {
				var x session.Txn
				x.Check("/line", -1)
				return s.Commit(ctx, x)
			},
		} {
			t.Run(stuck+"/"+name, func(t *testing.T) {
				zktest.Bubble(t, func(t *testing.T) {
					srv := zkserver.New(zkserver.Config{})
					defer srv.Close()
					open := make(chan struct{})
					close(open)
					c := &clogged{over: make(chan struct{})}
					c.gate.Store(&open)
					s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: 40 * time.Second}, func(context.Context, string, string) (net.Conn, error) {
						near, far := net.Pipe()
						go srv.ServeConn(far)
						c.Conn = near
						return c, nil
					}))(t)
					own, _, err := s.CreateBare(t.Context(), "/line", "lock-", nil, false, s.EnsureQueuePath)
					must.Do(t, err)
					time.Sleep(20 * time.Second) // the proof is old
					synctest.Wait()
					var proceed func()
					if stuck == "writing" {
						gate := make(chan struct{})
						c.gate.Store(&gate)
						proceed = func() { close(gate) }
					} else {
						proceed = s.DelayWatch("/line")
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					begun := time.Now()
					result := make(chan error, 1)
					go func() { result <- use(ctx, s, own) }()
					select {
					case err = <-result:
						if took := time.Since(begun); took > patience {
							t.Errorf("it returned after %v", took)
						}
					case <-time.After(2 * patience):
						t.Error("it does not return")
						proceed()
						proceed = func() {}
						err = <-result
					}
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					proceed()
					must.Report(t, s.Close(t.Context()))
					time.Sleep(time.Minute) // go-zookeeper's Close waits for a second
				})
			})
		}
	}
}
