package server

import (
	"errors"
	"sync"
	"testing"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// sent is an outbox whose stream is a list. Sending waits for free, if it is not nil.
type sent struct {
	outbox
	tasks sync.WaitGroup
	begun chan struct{} // gets an element when a message is under way, if free is not nil
	free  chan struct{}
	err   error
	list  []string
}

func newSent() *sent {
	s := new(sent)
	s.begin(s.note, func(beat uint64) *pb.OpenResponse {
		return &pb.OpenResponse{Message: &pb.OpenResponse_BeatEcho{BeatEcho: &pb.BeatEcho{Number: beat}}}
	}, s.tasks.Go)
	return s
}

func (s *sent) note(m *pb.OpenResponse) error {
	if s.free != nil {
		s.begun <- struct{}{}
		<-s.free
	}
	what := "?"
	switch m := m.GetMessage().(type) {
	case *pb.OpenResponse_Joined:
		what = m.Joined.GetRequestId()
	case *pb.OpenResponse_BeatEcho:
		what = "echo " + string(rune('0'+m.BeatEcho.GetNumber()))
	case *pb.OpenResponse_StateChanged:
		what = m.StateChanged.GetState().String()
	}
	s.list = append(s.list, what)
	return s.err
}

func joined(id string) *pb.OpenResponse {
	return &pb.OpenResponse{Message: &pb.OpenResponse_Joined{Joined: &pb.Joined{RequestId: id}}}
}

func state(s pb.State) *pb.OpenResponse {
	return &pb.OpenResponse{Message: &pb.OpenResponse_StateChanged{StateChanged: &pb.StateChanged{State: s}}}
}

func expect(t *testing.T, s *sent, want ...string) {
	t.Helper()
	s.tasks.Wait()
	if len(s.list) != len(want) {
		t.Fatalf("sent %q; want %q", s.list, want)
	}
	for i := range want {
		if s.list[i] != want[i] {
			t.Fatalf("sent %q; want %q", s.list, want)
		}
	}
}

// While a message is under way, the next ones wait. Of beats and of states the latest
// goes, and the loss comes last.
func TestOutboxSendsInOrderAndTheLossLast(t *testing.T) {
	s := newSent()
	s.begun, s.free = make(chan struct{}, 9), make(chan struct{})
	s.put(joined("a"))
	<-s.begun
	s.put(joined("b"))
	s.beat(1)
	s.change(state(pb.State_STATE_SUSPENDED))
	s.put(joined("c"))
	s.change(state(pb.State_STATE_CONNECTED))
	s.beat(2)
	heard := make(chan struct{})
	s.end(state(pb.State_STATE_LOST), func() { <-heard })
	s.end(state(pb.State_STATE_SUSPENDED), func() { t.Error("the second end counts") })
	close(s.free)
	select {
	case <-s.over:
		t.Fatal("over before the host has heard")
	default:
	}
	close(heard)
	if err := <-s.over; err != nil {
		t.Fatal(err)
	}
	s.put(joined("d"))
	s.beat(3)
	s.change(state(pb.State_STATE_CONNECTED))
	want := []string{"a", "b", "c", "STATE_CONNECTED", "echo 2", "STATE_LOST"}
	expect(t, s, want...)
}

// A goroutine that has nothing more to send ends, and another one comes.
func TestOutboxSendsWhatComesLater(t *testing.T) {
	s := newSent()
	s.put(joined("a"))
	expect(t, s, "a")
	s.beat(1)
	expect(t, s, "a", "echo 1")
	if s.sending {
		t.Error("it still sends")
	}
}

func TestOutboxEndsWithItsStream(t *testing.T) {
	s := newSent()
	s.err = errors.New("the stream is gone")
	s.put(joined("a"))
	if err := <-s.over; err != s.err {
		t.Fatal(err)
	}
	s.put(joined("b"))
	s.end(state(pb.State_STATE_LOST), func() { t.Error("nobody hears it") })
	expect(t, s, "a")
}
