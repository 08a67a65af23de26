package link_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// leaving is a plugin that can report the end of its session: loses sends the reason.
func leaving(detach func(context.Context) error) (s *scripted, loses func(error)) {
	reasons := make(chan error, 1)
	return &scripted{detach: detach, open: func(st leaseStream, _ *pb.Resume) error {
		both := shared{st, new(sync.Mutex)}
		go func() { _ = serves(time.Hour)(both, nil) }() // until the stream ends
		select {
		case why := <-reasons:
			_ = both.Send(&pb.OpenResponse{Message: &pb.OpenResponse_StateChanged{StateChanged: &pb.StateChanged{
				State: pb.State_STATE_LOST, Reason: rpcwire.ToFailure(why),
			}}})
		case <-st.Context().Done():
		}
		return nil
	}}, func(why error) { reasons <- why }
}

// The session is not resumed before its plugin has ended, even if the next plugin could. On a busy
// machine the answer to Detach arrives too late. If the plugin's process has ended, the stream's
// report counts.
func TestADetachedSessionWaitsForTheEndOfItsPlugin(t *testing.T) {
	for name, answers := range map[string]bool{"answered": true, "without an answer": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := client.Unconnected()
				var loses func(error)
				first, loses := leaving(func(ctx context.Context) error {
					loses(recipes.ErrSessionLost)
					if !answers {
						<-ctx.Done()
					}
					return ctx.Err()
				})
				p, kill := play(t, c, first)
				s := openScripted(t, c)
				p.Pause(ctx(t), time.Second)
				bound, cancel := context.WithTimeout(ctx(t), time.Second)
				defer cancel()
				all, moved := p.DetachSessions(bound)
				if all != answers {
					t.Errorf("all sessions are detached: %v", all)
				}
				var gone atomic.Bool
				play(t, c, &scripted{open: func(st leaseStream, r *pb.Resume) error {
					if !gone.Load() {
						t.Error("it was resumed before its plugin had ended")
					}
					return serves(time.Hour)(st, r)
				}})
				short, cancel := context.WithTimeout(ctx(t), 100*time.Millisecond)
				defer cancel()
				if err := moved(short); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("moved: %v", err)
				}
				synctest.Wait() // the stream has ended too
				must.Report(t, s.Err())
				gone.Store(true)
				kill()
				if err := errors.Join(moved(ctx(t)), s.Err()); err != nil || s.State() != recipes.Connected {
					t.Errorf("%v: %v", s.State(), err)
				}
			})
		})
	}
}

// The answer to Detach may take long.
func TestALossIsReportedDuringDetach(t *testing.T) {
	for _, why := range []error{recipes.ErrExpired, recipes.ErrDeadline, recipes.ErrPluginLost, recipes.ErrAuthFailed} {
		c := client.Unconnected()
		answer := make(chan struct{})
		var loses func(error)
		first, loses := leaving(func(context.Context) error { loses(why); <-answer; return nil })
		p, _ := play(t, c, first)
		s := openScripted(t, c)
		p.Pause(ctx(t), time.Second)
		let := make(chan func(context.Context) error)
		go func() { _, moved := p.DetachSessions(ctx(t)); let <- moved }()
		closes(t, "Done", s.Done())
		matches(t, s.Err(), why)
		close(answer)
		matches(t, (<-let)(ctx(t)), why)
	}
}

// The plugin refuses to detach the session, and reports a loss without a reason.
func TestASessionThatWasNotDetachedIsLostWithItsPlugin(t *testing.T) {
	c := client.Unconnected()
	var loses func(error)
	first, loses := leaving(func(context.Context) error {
		loses(recipes.ErrSessionLost)
		return rpcwire.ToStatus(recipes.ErrSessionLost)
	})
	p, _ := play(t, c, first)
	s := openScripted(t, c)
	p.Pause(ctx(t), time.Second)
	if all, _ := p.DetachSessions(ctx(t)); all {
		t.Error("all sessions are reported as detached")
	}
	closes(t, "Done", s.Done())
	matches(t, s.Err(), recipes.ErrSessionLost)
}

// After the kill, its sessions continue in the next plugin.
func TestAPluginThatDoesNotDetachIsKilled(t *testing.T) {
	c := client.Unconnected()
	first, _ := leaving(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	p, kill := play(t, c, first)
	s := openScripted(t, c)
	p.Pause(ctx(t), time.Second)
	bound, cancel := context.WithTimeout(ctx(t), 10*time.Millisecond)
	defer cancel()
	all, moved := p.DetachSessions(bound)
	if all {
		t.Error("all sessions are reported as detached")
	}
	kill()
	play(t, c, &scripted{open: serves(time.Hour)})
	must.Report(t, errors.Join(moved(ctx(t)), s.Err()))
}

// A plugin that has exited in an orderly way has closed its sessions. It never had this one.
func TestASessionThatNeverReachedAPluginContinuesInTheNext(t *testing.T) {
	c := client.Unconnected()
	_, kill := play(t, c, &scripted{open: serves(time.Hour)})
	s := openScripted(t, c)
	kill()
	dialed := make(chan struct{})
	dials := sync.OnceFunc(func() { close(dialed) })
	conn := must.Get(grpc.NewClient("passthrough:///gone", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { dials(); return nil, syscall.ENOENT })))(t)
	defer conn.Close()
	gone := c.Connect(conn, nil, func(context.Context) bool { return false })
	c.Use(gone, true)
	closes(t, "the dial", dialed)
	gone.ProcessEnded(ctx(t))
	play(t, c, &scripted{open: serves(time.Hour)})
	for e := range s.Events(ctx(t)) {
		if e.State == recipes.Connected || e.State == recipes.Lost {
			break
		}
	}
	must.Report(t, s.Err())
}

// The plugin detaches the session while the write is in progress, and answers that it may
// have been applied.
func TestAWriteOfUnknownOutcomeIsNotRepeated(t *testing.T) {
	c := client.Unconnected()
	var loses func(error)
	writing, leaves := make(chan struct{}), make(chan struct{})
	granted := func(*pb.AcquireRequest) (*pb.AcquireResponse, error) {
		return &pb.AcquireResponse{Grant: &pb.Grant{Token: 1, Znode: "/l/lock-1"}}, nil
	}
	first, loses := leaving(func(context.Context) error { close(leaves); loses(recipes.ErrSessionLost); return nil })
	first.acquire = granted
	first.write = func() error {
		close(writing)
		<-leaves
		return rpcwire.ToStatus(errors.Join(recipes.ErrUnknownOutcome, recipes.ErrSessionLost))
	}
	p, kill := play(t, c, first)
	s := openScripted(t, c)
	h := acquire(t, s)
	written := make(chan error, 1)
	go func() { written <- h.Write(ctx(t)) }()
	closes(t, "the write", writing)
	p.Pause(ctx(t), time.Millisecond)
	if all, _ := p.DetachSessions(ctx(t)); !all {
		t.Error("the plugin has not detached the session")
	}
	kill()
	play(t, c, &scripted{open: serves(time.Hour), acquire: granted, write: func() error {
		t.Error("the write was made again")
		return nil
	}})
	if err := <-written; !errors.Is(err, recipes.ErrUnknownOutcome) || errors.Is(err, recipes.ErrSessionLost) {
		t.Errorf("the write: %v", err)
	}
}
