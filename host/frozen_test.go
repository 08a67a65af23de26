package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// service is a plugin that closes its sessions after a time. If it is frozen, it answers
// nothing.
type service struct {
	pb.PluginServiceClient
	frozen bool
	after  time.Duration
}

func (s service) Info(ctx context.Context, _ *pb.InfoRequest, _ ...grpc.CallOption) (*pb.InfoResponse, error) {
	if s.frozen {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &pb.InfoResponse{}, nil
}

func (s service) Shutdown(ctx context.Context, _ *pb.ShutdownRequest, _ ...grpc.CallOption) (*pb.ShutdownResponse, error) {
	select {
	case <-time.After(s.after):
		return &pb.ShutdownResponse{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fakeProcess is a process that exits at once. If it is frozen, it exits when it is killed.
type fakeProcess struct {
	frozen bool
	ended  chan struct{}
}

func (e fakeProcess) stop(ctx context.Context) {
	if e.frozen {
		ctx, cancel := context.WithTimeout(ctx, killTimeout)
		defer cancel()
		<-ctx.Done()
	}
	close(e.ended)
}
func (e fakeProcess) disconnected(error)    {}
func (e fakeProcess) gone() <-chan struct{} { return e.ended }
func (e fakeProcess) cleanUp()              {}
func (e fakeProcess) ending() string        { return "" }
func (e fakeProcess) pid() int              { return 0 }

// TestCloseKillsAFrozenPluginSoon: Close waits for a plugin that closes sessions, but not for
// one that answers nothing.
func TestCloseKillsAFrozenPluginSoon(t *testing.T) {
	for _, tt := range []struct {
		name   string
		frozen bool
		want   time.Duration
	}{
		{"frozen", true, answerTimeout},
		{"slow ZooKeeper", false, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := fakeProcess{tt.frozen, make(chan struct{})}
				s := service{frozen: tt.frozen, after: 2 * time.Second}
				if tt.frozen {
					s.after = time.Hour
				}
				c := client.Unconnected()
				p := &Plugin{service: s, link: c.Connect(nil, nil, nil), peer: e, exited: e.ended}
				begun := time.Now()
				err := p.Close(context.Background())
				if took := time.Since(begun); took != tt.want || (err != nil) != tt.frozen {
					t.Errorf("%v after %v, want %v", err, took, tt.want)
				}
			})
		})
	}
}

// TestAPluginIsAskedToExitBeforeItIsKilled: it can then write its last logs and delete its files.
func TestAPluginIsAskedToExitBeforeItIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaunched(Config{})
		l.client = goplugin.NewClient(&goplugin.ClientConfig{})
		l.process = &process{exited: make(chan struct{})}
		stopped := make(chan struct{})
		go func() { l.stop(t.Context()); close(stopped) }()
		for _, kills := range []bool{false, true} {
			synctest.Wait()
			select {
			case <-l.killed: // Kill of go-plugin was called
			default:
				t.Error("it was not asked")
			}
			l.mu.Lock()
			if l.aborted != kills {
				t.Errorf("killed: %v", l.aborted)
			}
			l.mu.Unlock()
			time.Sleep(killTimeout)
		}
		close(l.process.exited)
		<-stopped
	})
}
