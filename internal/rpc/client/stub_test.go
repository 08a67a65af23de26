package client_test

import (
	"context"
	"errors"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The tests of most stubs are beside those of package link, which make their calls by stubs.

func TestMain(m *testing.M) { leaktest.Main(m) }

// answers is a connection to a plugin that answers calls by the names of their methods.
type answers map[string]func() (proto.Message, error)

func (a answers) Invoke(_ context.Context, method string, _, reply any, _ ...grpc.CallOption) error {
	answer, ok := a[path.Base(method)]
	if !ok {
		return nil
	}
	m, err := answer()
	if err == nil {
		proto.Merge(reply.(proto.Message), m)
	}
	return err
}

func (a answers) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &lease{ctx: ctx, messages: make(chan *pb.OpenResponse, 10)}, nil
}

// lease is the stream of a session that can outlive its plugin. It echoes heartbeats.
type lease struct {
	grpc.ClientStream
	ctx      context.Context
	messages chan *pb.OpenResponse
}

func (l *lease) SendMsg(m any) error {
	beat := m.(*pb.OpenRequest).GetBeat()
	if beat == nil {
		l.messages <- &pb.OpenResponse{Message: &pb.OpenResponse_Opened{Opened: &pb.Opened{
			Session: "s", SessionId: 7, Timeout: durationpb.New(time.Hour), State: pb.State_STATE_CONNECTED, Ticket: []byte("ticket"),
		}}}
		return nil
	}
	l.messages <- &pb.OpenResponse{Message: &pb.OpenResponse_BeatEcho{BeatEcho: &pb.BeatEcho{Number: beat.GetNumber()}}}
	return nil
}

func (l *lease) RecvMsg(m any) error {
	select {
	case next := <-l.messages:
		proto.Merge(m.(proto.Message), next)
		return nil
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
}

// open opens a session with a plugin.
func open(t *testing.T, a answers) recipes.Client {
	c := client.Unconnected()
	t.Cleanup(c.Close)
	c.Use(c.Connect(a, nil, func(context.Context) bool { return true }), true)
	return must.Get(c.Open(t.Context(), recipes.SessionConfig{Servers: []string{"none"}}))(t)
}

// A transaction without a name cannot be resumed: the next plugin would begin another one.
func TestATransactionWithoutANameIsNotResumed(t *testing.T) {
	for name, want := range map[string]bool{"": false, "tx-1": true} {
		s := open(t, answers{"BeginTransaction": func() (proto.Message, error) {
			return &pb.BeginTransactionResponse{Transaction: name}, nil
		}})
		tx := must.Get(s.Transaction("/tx", recipes.TransactionConfig{}))(t)
		must.Do(t, tx.Begin(t.Context(), nil, "a"))
		if resumes := s.(interface{ Part(string) *link.Part }).Part("/tx") != nil; resumes != want {
			t.Errorf("name %q: resumed: %v", name, resumes)
		}
	}
}

// A hold whose session ends during the downgrade is not held any more.
func TestADowngradeWhoseSessionEndsIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, answers{
			"Acquire": func() (proto.Message, error) {
				return &pb.AcquireResponse{Grant: &pb.Grant{Token: 1, Znode: "/l/1"}}, nil
			},
			"Downgrade": func() (proto.Message, error) { return nil, wire.ToStatus(recipes.ErrExpired) },
		})
		l := must.Get(s.SharedLock("/l", recipes.SharedLockConfig{}))(t)
		h := must.Get(l.AcquireWrite(t.Context()))(t)
		if err := h.Downgrade(t.Context()); !errors.Is(err, recipes.ErrNotHeld) || !errors.Is(err, recipes.ErrExpired) {
			t.Errorf("it ends with %v", err)
		}
	})
}
