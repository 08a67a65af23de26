package client_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestAbandonIsRepeatedUntilItIsAnswered loses that answer too.
func TestAbandonIsRepeatedUntilItIsAnswered(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	c, cancel := context.WithCancel(ctx(t))
	answered := make(chan struct{})
	spy.loseAnswer("Acquire", cancel)
	spy.loseAnswer("Abandon", func() { close(answered) })
	if _, err := lock(t, s, recipes.LockConfig{}).Acquire(c); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	closes(t, "the first answer", answered)
	l.inLine(t, 0)
	if err := s.Close(ctx(t)); err != nil {
		t.Error(err)
	}
}

// raw speaks to the plugin as a host in another language does.
type raw struct {
	locks      pb.LockServiceClient
	grants     pb.GrantServiceClient
	contenders pb.ContenderServiceClient
	session    string
}

func (l *link) raw(t *testing.T) raw {
	t.Helper()
	st, err := pb.NewSessionServiceClient(l.conn).Open(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	start := &pb.Start{Config: &pb.Config{Servers: []string{"fake"}}}
	if err := st.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Start{Start: start}}); err != nil {
		t.Fatal(err)
	}
	m, err := st.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return raw{
		pb.NewLockServiceClient(l.conn), pb.NewGrantServiceClient(l.conn), pb.NewContenderServiceClient(l.conn), m.GetOpened().GetSession(),
	}
}

func (r raw) acquire(ctx context.Context, id string, opts ...grpc.CallOption) (*pb.AcquireResponse, error) {
	return r.locks.Acquire(ctx, &pb.AcquireRequest{Session: r.session, RequestId: id, Path: "/l"}, opts...)
}

func newRawLink(t *testing.T) (*link, raw) {
	t.Helper()
	l := newLink(t)
	l.world.Timeout = patience * 3
	return l, l.raw(t)
}

// TestRetryAfterALostReplyFindsWhatItMade is a host that repeats a call because
// it does not know that it succeeded.
func TestRetryAfterALostReplyFindsWhatItMade(t *testing.T) {
	l, r := newRawLink(t)
	first, err := r.acquire(ctx(t), "one")
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.acquire(ctx(t), "one")
	if err != nil || again.GetGrant().GetZnode() != first.GetGrant().GetZnode() {
		t.Fatalf("%v, %v; want %v", again, err, first)
	}
	l.inLine(t, 1)
	for range 2 { // a release can be repeated too
		if _, err := r.grants.Release(ctx(t), &pb.ReleaseRequest{Session: r.session, RequestId: "one"}); err != nil {
			t.Error(err)
		}
	}
	l.inLine(t, 0)
}

// TestRetryJoinsTheCallThatStillWaits: the contender stays in line as long as
// one of its callers waits.
func TestRetryJoinsTheCallThatStillWaits(t *testing.T) {
	l, r := newRawLink(t)
	if _, err := r.acquire(ctx(t), "holder"); err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 1)
	first, giveUp := context.WithCancel(ctx(t))
	go func() { _, err := r.acquire(first, "waiter"); results <- err }()
	l.inLine(t, 2)
	second := make(chan error, 1)
	<-l.calls // the calls so far
	go func() { _, err := r.acquire(ctx(t), "waiter"); second <- err }()
	<-l.calls
	l.settle(t, r)
	giveUp()
	if err := <-results; err == nil {
		t.Error("a cancelled call succeeded")
	}
	l.settle(t, r)
	if n := len(l.world.Line("/l")); n != 2 {
		t.Fatalf("%d in line", n)
	}
	if _, err := r.grants.Release(ctx(t), &pb.ReleaseRequest{Session: r.session, RequestId: "holder"}); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// settle returns when the server has dealt with what was sent before: frames of
// one connection are read in order.
func (l *link) settle(t *testing.T, r raw) {
	t.Helper()
	for range 20 {
		if _, err := r.contenders.Contenders(ctx(t), &pb.ContendersRequest{Session: r.session, Path: "/l"}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAbandonThatOvertakesItsCallIsRemembered: calls of one connection may
// arrive in any order.
func TestAbandonThatOvertakesItsCallIsRemembered(t *testing.T) {
	l, r := newRawLink(t)
	if _, err := r.grants.Abandon(ctx(t), &pb.AbandonRequest{Session: r.session, RequestId: "late"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.acquire(ctx(t), "late"); err == nil {
		t.Error("an abandoned call was granted")
	}
	l.inLine(t, 0)
}

func TestAbandonTakesTheWaitingOutOfTheLine(t *testing.T) {
	l, r := newRawLink(t)
	if _, err := r.acquire(ctx(t), "holder"); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { _, err := r.acquire(ctx(t), "waiter"); result <- err }()
	l.inLine(t, 2)
	if _, err := r.grants.Abandon(ctx(t), &pb.AbandonRequest{Session: r.session, RequestId: "waiter"}); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err == nil {
		t.Error("an abandoned call was granted")
	}
	l.inLine(t, 1)
}

// TestHalfClosedStreamEndsTheSession: its host could send no more beats.
func TestHalfClosedStreamEndsTheSession(t *testing.T) {
	l := newLink(t)
	st, err := pb.NewSessionServiceClient(l.conn).Open(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	start := &pb.Start{Config: &pb.Config{Servers: []string{"fake"}}}
	if err := st.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Start{Start: start}}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := st.CloseSend(); err != nil {
		t.Fatal(err)
	}
	m, err := st.Recv()
	if err != nil || m.GetStateChanged().GetState() != pb.State_STATE_LOST || m.GetStateChanged().GetReason().GetReasons()[0] != "SESSION_CLOSED" {
		t.Errorf("%v, %v", m, err)
	}
	closes(t, "the plugin's session", l.world.Session(0).Done())
}
