package server

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func logTo(b *strings.Builder) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: b, Level: hclog.Error})
}

// The panic does not affect other calls.
func TestPanicInAHandlerIsAnErrorOfItsCall(t *testing.T) {
	var log strings.Builder
	_, err := containUnary(logTo(&log))(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/x/Unary"}, func(context.Context, any) (any, error) {
		panic("s3cret")
	})
	check := func(err error, where string) {
		t.Helper()
		err, said := wire.Error(err)
		if !said || !errors.Is(err, recipes.ErrInternal) || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), where) {
			t.Errorf("the host gets %v", err)
		}
		if !strings.Contains(log.String(), "s3cret") || !strings.Contains(log.String(), "panic_test.go") {
			t.Errorf("the log lacks the panic or its stack: %s", log.String())
		}
		log.Reset()
	}
	check(err, "/x/Unary")
	err = containStream(logTo(&log))(nil, nil, &grpc.StreamServerInfo{FullMethod: "/x/Stream"}, func(any, grpc.ServerStream) error {
		panic("s3cret")
	})
	check(err, "/x/Stream")

	s := New(Config{Logger: logTo(&log)})
	ss := &session{ctx: t.Context(), log: s.rpcLog()}
	ss.acquisitions = newAcquisitions(ss, 1)
	s.add(ss)
	_, err = ss.acquisitions.call(t.Context(), target{session: ss}, requestOf("it"),
		func(context.Context, target, *pb.AcquireRequest, func(recipes.Place)) (*grant, error) {
			panic("s3cret")
		})
	if _, held := ss.acquisitions.granted("it"); held == nil {
		t.Error("an acquisition that panicked holds something")
	}
	check(toStatus(err), "an acquisition")
}

func TestErrorOfAHandlerIsTheContracts(t *testing.T) {
	answer, err := containUnary(hclog.NewNullLogger())(t.Context(), nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) {
		return 5, recipes.ErrContended
	})
	e, said := wire.Error(err)
	if answer != 5 || !said || !errors.Is(e, recipes.ErrContended) {
		t.Error(answer, err)
	}
	status := wire.ToStatus(recipes.ErrContended)
	for _, err := range []error{nil, status} {
		if got := toStatus(err); got != err {
			t.Errorf("%v has become %v", err, got)
		}
	}
}

// asking is a stream with one request.
type asking struct {
	grpc.ServerStream
	session string
}

func (a asking) RecvMsg(m any) error {
	m.(*pb.ObserveRequest).Session = a.session
	return nil
}

func TestLimitsHaveDefaults(t *testing.T) {
	all, given := Limits{MaxSessions, MaxGrants, MaxWatches, MaxMessage}, Limits{1, 2, 3, 4}
	if got := (Limits{}).Normalize(); got != all {
		t.Error(got)
	}
	if got := given.Normalize(); got != given {
		t.Error(got)
	}
}

func TestSessionsAreLimited(t *testing.T) {
	l := newLimiter(Limits{Sessions: 2})
	open := func(then func()) error {
		return l.stream(nil, nil, &grpc.StreamServerInfo{FullMethod: pb.SessionService_Open_FullMethodName}, func(any, grpc.ServerStream) error {
			then()
			return nil
		})
	}
	for range 2 { // again, when they have ended
		must.Report(t, open(func() {
			must.Report(t, open(func() {
				if err, _ := wire.Error(open(func() { t.Error("a third was opened") })); !errors.Is(err, recipes.ErrLimit) {
					t.Error(err)
				}
			}))
		}))
	}
}

func TestWatchesAreLimitedForEachSession(t *testing.T) {
	l := newLimiter(Limits{Watches: 1})
	watch := func(session string, then func()) error {
		return l.stream(nil, asking{session: session}, &grpc.StreamServerInfo{FullMethod: pb.ElectionService_Observe_FullMethodName}, func(_ any, st grpc.ServerStream) error {
			if err := st.RecvMsg(&pb.ObserveRequest{}); err != nil {
				return err
			}
			then()
			return nil
		})
	}
	for range 2 {
		must.Report(t, watch("a", func() {
			if err, _ := wire.Error(watch("a", func() { t.Error("a second watch") })); !errors.Is(err, recipes.ErrLimit) {
				t.Error(err)
			}
			if err := watch("b", func() {}); err != nil {
				t.Errorf("another session: %v", err)
			}
		}))
	}
	if len(l.streams) > 0 {
		t.Errorf("%v is still counted", l.streams)
	}
}

// brittle is a connection whose second read panics.
type brittle struct {
	net.Conn
	reads int
}

func (b *brittle) Read(p []byte) (int, error) {
	if b.reads++; b.reads > 1 {
		panic("s3cret")
	}
	return b.Conn.Read(p)
}

// The panic ends the connection, not the plugin.
func TestPanicInAConnectionOfCallsEndsIt(t *testing.T) {
	host, plugin := net.Pipe()
	s := New(Config{})
	var serving sync.WaitGroup
	serving.Go(func() { s.ServeCalls(t.Context(), &brittle{Conn: plugin}) })
	go func() { _, _ = host.Write(make([]byte, 8)) }() // two empty messages; ends with the connection
	if _, err := io.Copy(io.Discard, host); err != nil {
		t.Error(err)
	}
	serving.Wait()
}

// A session may end before the first host has attached.
func TestOnlyAPluginWithoutItsHostsIsOrphaned(t *testing.T) {
	s := New(Config{})
	s.remove(&session{})
	if s.orphaned.Err() != nil {
		t.Error("a plugin that waits for its first host is orphaned")
	}
}
