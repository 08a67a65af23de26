package link_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Before the first echo the host does not know the age of the session's last contact with
// ZooKeeper, and could not end the session in time.
func TestOpenWaitsForTheFirstEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled, cancel := context.WithCancel(ctx(t))
		defer cancel()
		beats := 0
		l := newLink(t, grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := stream(ctx, d, cc, method, opts...)
			return beatless{s, func() {
				if beats++; beats == 3 { // a plugin that echoes has answered by now
					cancel()
				}
			}}, err
		}))
		s, err := l.client.Open(cancelled, recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: time.Minute})
		if err == nil {
			t.Fatalf("opened %v without an echo", s.ID())
		}
		matches(t, err, recipes.ErrUnavailable, context.Canceled)
	})
}

// The plugin refuses the message unread, and keeps running.
func TestAConfigurationThatIsTooLargeIsNoLossOfThePlugin(t *testing.T) {
	l := newLinkWithin(t, server.Limits{Message: 4 << 10})
	acl := []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "x", ID: strings.Repeat("x", 8<<10)}}
	_, err := l.client.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}, ACL: acl})
	if matches(t, err, recipes.ErrTooLarge); errors.Is(err, recipes.ErrPluginLost) {
		t.Error(err)
	}
}

// beatless drops the heartbeats of a session's stream.
type beatless struct {
	grpc.ClientStream
	lost func()
}

func (b beatless) SendMsg(m any) error {
	if r, ok := m.(*pb.OpenRequest); ok && r.GetBeat() != nil {
		b.lost()
		return nil
	}
	return b.ClientStream.SendMsg(m)
}

// The test cancels Open after the plugin has opened the session.
func TestCancelledOpenLeavesNoSession(t *testing.T) {
	zk, dial := zktest.Piped(t)
	c, cancel := context.WithCancel(ctx(t))
	l := newLinkOver(t, func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		defer cancel()
		return dial.Open(ctx, cfg)
	})
	s, err := l.client.Open(c, recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: time.Minute})
	if err == nil {
		t.Fatalf("opened %v", s.ID())
	}
	matches(t, err, context.Canceled)
	eventually(t, "the session is open", func() bool { return len(zk.Sessions()) == 0 })
}

// The error does not blame the plugin or suggest another attempt.
func TestConfigurationThatCannotBeSentIsInvalid(t *testing.T) {
	l := newLink(t)
	_, err := l.client.Open(ctx(t), recipes.SessionConfig{
		Servers: []string{"host"}, Digest: &recipes.Digest{User: "u", Password: "caf\xe9"},
	})
	matches(t, err, recipes.ErrInvalid)
	for _, wrong := range []error{recipes.ErrUnavailable, recipes.ErrPluginLost} {
		if errors.Is(err, wrong) {
			t.Errorf("%v matches %q", err, wrong)
		}
	}
}

// The test closes the client after the plugin has opened the session.
func TestOpenDuringCloseCountsNoSession(t *testing.T) {
	var l *link
	l = newLink(t, grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		st, err := stream(ctx, d, cc, method, opts...)
		return openedLast{st, func() { l.client.Close() }}, err
	}))
	reader := sdkmetric.NewManualReader()
	l.client.Measure(must.Get(telemetry.NewMeters(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))(t))
	_, err := l.client.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}})
	matches(t, err, recipes.ErrUnavailable, recipes.ErrClosed)
	var got metricdata.ResourceMetrics
	must.Do(t, reader.Collect(ctx(t), &got))
	opened := got.ScopeMetrics[0].Metrics[0]
	if n := opened.Data.(metricdata.Sum[int64]).DataPoints[0].Value; opened.Name != telemetry.Sessions || n != 0 {
		t.Errorf("%d %s", n, opened.Name)
	}
}

// openedLast calls then after the plugin has sent Opened.
type openedLast struct {
	grpc.ClientStream
	then func()
}

func (o openedLast) RecvMsg(m any) error {
	err := o.ClientStream.RecvMsg(m)
	if r, ok := m.(*pb.OpenResponse); ok && r.GetOpened() != nil {
		o.then()
	}
	return err
}

// A plugin that does not report what the servers are cannot refuse Keeper. So the host ends the session.
func TestAnOlderPluginCannotRefuseKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client.Unconnected()
		ended := make(chan struct{})
		play(t, c, &scripted{open: func(st leaseStream, r *pb.Resume) error { defer close(ended); return serves(time.Hour)(st, r) }})
		_, err := c.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}, ZooKeeperOnly: true})
		if err == nil {
			t.Fatal("opened")
		}
		matches(t, err, recipes.ErrUnsupported)
		<-ended
	})
}
