package client

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
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
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// begun answers as a plugin that has begun a transaction of that name.
type begun struct {
	pb.TransactionServiceClient
	name string
}

func (b begun) BeginTransaction(context.Context, *pb.BeginTransactionRequest, ...grpc.CallOption) (*pb.BeginTransactionResponse, error) {
	return &pb.BeginTransactionResponse{Transaction: b.name}, nil
}

// A transaction without a name cannot be resumed: the next plugin would begin another one.
func TestATransactionWithoutANameIsNotResumed(t *testing.T) {
	for name, want := range map[string]bool{"": false, "tx-1": true} {
		s, generationOf := resumable(t)
		s.begin(generationOf())
		s.Client.transactions = begun{name: name}
		tx, err := s.Transaction("/tx", recipes.TransactionConfig{})
		if err == nil {
			err = tx.Begin(t.Context(), nil, "a")
		}
		if resumes := s.part("/tx") != nil; err != nil || resumes != want {
			t.Errorf("of the name %q: %v; it is resumed: %v", name, err, resumes)
		}
	}
}
