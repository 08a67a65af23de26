package link_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// lateLoss is a wire on which the loss of a session arrives slightly after the end of the
// watches, which are separate streams.
func lateLoss(moment time.Duration) grpc.DialOption {
	return grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		st, err := streamer(ctx, desc, cc, method, opts...)
		if err == nil && strings.HasSuffix(method, "/Open") {
			st = late{st, moment}
		}
		return st, err
	})
}

type late struct {
	grpc.ClientStream
	moment time.Duration
}

func (l late) RecvMsg(m any) error {
	err := l.ClientStream.RecvMsg(m)
	if r, ok := m.(*pb.OpenResponse); err != nil || ok && r.GetStateChanged().GetState() == pb.State_STATE_LOST {
		time.Sleep(l.moment)
	}
	return err
}

// A reader that reaches the end of the channel calls Session.Err for the reason.
func TestWatchIsClosedWhenTheLossIsKnown(t *testing.T) {
	l := newLink(t, lateLoss(50*time.Millisecond))
	s := l.open(t, 0)
	leaders := must.Get(election(t, s).Observe(ctx(t)))(t)
	l.zk.ExpireSession(s.ID())
	for range leaders {
	}
	matches(t, s.Err(), recipes.ErrExpired)
}

// The session continues.
func TestWatchThatBreaksIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			st, err := streamer(ctx, desc, cc, method, opts...)
			if err == nil && strings.HasSuffix(method, "/Observe") {
				st = &breaking{ClientStream: st}
			}
			return st, err
		}))
		s := l.open(t, 0)
		leaders := must.Get(election(t, s).Observe(t.Context()))(t)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			for range leaders {
			}
		}()
		closes(t, "the watch", closed)
		if err := s.Err(); err != nil {
			t.Errorf("the session is lost: %v", err)
		}
	})
}

// breaking is a stream that breaks after its first message.
type breaking struct {
	grpc.ClientStream
	read bool
}

func (b *breaking) RecvMsg(m any) error {
	if b.read {
		return status.Error(codes.Unavailable, "broken by the test")
	}
	b.read = true
	return b.ClientStream.RecvMsg(m)
}
