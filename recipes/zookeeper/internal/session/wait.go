package session

import (
	"context"
	"fmt"
	"reflect"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Wait returns nil when one of the events happens: a watch fires, the connection ends (the
// channel that Connected returned), or another channel closes. The caller then reads again. A
// nil channel never causes a return. If the session is lost first, Wait returns the reason. If ctx is
// done first, it returns ctx's error, with what the caller was waiting for.
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
	// Most waits have two events besides the session's end and ctx's. A select statement for
	// four channels allocates nothing.
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

// Happened reports whether event is closed.
func Happened(event <-chan struct{}) bool { return conn.Happened(event) }
