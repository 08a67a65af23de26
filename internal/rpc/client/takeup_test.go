package client

import (
	"context"
	"testing"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestAPluginThatHasEndedDoesNotBeginToServe: its stream has ended while it took up the
// last grant. Calls would be made to it again and again, and waiters lose their place.
func TestAPluginThatHasEndedDoesNotBeginToServe(t *testing.T) {
	c := Unconnected()
	defer c.Close()
	p := c.Connect(nil, nil, func(context.Context) bool { return true })
	generationOf := func() *generation {
		return newGeneration(p, nil, func() {}, nil, &pb.Opened{State: pb.State_STATE_CONNECTED})
	}
	s := newSession(c, recipes.SessionConfig{}, generationOf(), &pb.Opened{Ticket: []byte("ticket")})
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
