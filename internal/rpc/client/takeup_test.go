package client

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// TestAPluginThatHasEndedDoesNotBeginToServe: its stream has ended while it took up the
// last grant. Calls would be made to it again and again, and waiters lose their place.
func TestAPluginThatHasEndedDoesNotBeginToServe(t *testing.T) {
	s, generationOf := resumable(t)
	s.mu.Lock()
	s.serve(nil)
	s.mu.Unlock()
	next := generationOf()
	next.stop()
	s.begin(next)
	if s.serving.Load() != nil {
		t.Error("it serves")
	}
	last := generationOf()
	s.begin(last)
	if s.serving.Load() != last {
		t.Error("the next one does not serve")
	}
}

// drops answers DropRest as a plugin does that ends meanwhile.
type drops struct {
	pb.SessionServiceClient
	ends func()
}

func (d drops) DropRest(context.Context, *pb.DropRestRequest, ...grpc.CallOption) (*pb.DropRestResponse, error) {
	d.ends()
	return nil, wire.ToStatus(context.Canceled, nil)
}

// What a plugin that has ended answered last is no refusal: the next one resumes the session.
func TestAPluginThatEndsAtDropRestLosesNoSession(t *testing.T) {
	s, generationOf := resumable(t)
	next := generationOf()
	s.sessions = drops{ends: next.stop}
	s.takeUp(next)
	must.Report(t, s.Err())
}
