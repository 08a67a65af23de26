package session

import (
	"context"
	"fmt"
	"reflect"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Wait waits until one of the events happens: a watch fires, the connection is
// lost (the channel that Connected returned), or whatever else the caller waits
// for. Then it returns nil, and the caller looks again. A nil channel never
// happens. If the session is lost first, Wait returns why; if ctx ends first, it
// returns that with what the caller was waiting for.
func (s *Session) Wait(ctx context.Context, what string, events ...<-chan struct{}) error {
	const lost, ended = 0, 1
	switch waitAny(append([]<-chan struct{}{s.Done(), ctx.Done()}, events...)) {
	case lost:
		return s.Err()
	case ended:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	return nil
}

// waitAny waits until one of the channels is closed, and returns its index.
func waitAny(events []<-chan struct{}) int {
	// Most waits have two events besides the session's end and ctx's. A select
	// statement allocates nothing for them.
	if len(events) == 4 {
		select {
		case <-events[0]:
			return 0
		case <-events[1]:
			return 1
		case <-events[2]:
			return 2
		case <-events[3]:
			return 3
		}
	}
	cases := make([]reflect.SelectCase, len(events))
	for i, event := range events {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(event)}
	}
	chosen, _, _ := reflect.Select(cases)
	return chosen
}

// Happened reports whether an event of Wait has happened.
func Happened(event <-chan struct{}) bool { return conn.Happened(event) }
