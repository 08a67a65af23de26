package server

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// sent is an outbox whose stream is a list. If free is not nil, sending waits for it.
type sent struct {
	outbox
	tasks sync.WaitGroup
	begun chan struct{} // gets an element when a message is being sent, if free is not nil
	free  chan struct{}
	err   error
	list  []string
	fulls int // how often unread was called
}

func newSent() *sent {
	s := &sent{outbox: outbox{limit: 4 << 20}}
	s.start(s.note, func(heartbeat uint64) *pb.OpenResponse {
		return &pb.OpenResponse{Message: &pb.OpenResponse_BeatEcho{BeatEcho: &pb.BeatEcho{Number: heartbeat}}}
	}, func() { s.fulls++ }, s.tasks.Go)
	return s
}

func (s *sent) note(m *pb.OpenResponse) error {
	if s.free != nil {
		s.begun <- struct{}{}
		<-s.free
	}
	what := "?"
	switch m := m.GetMessage().(type) {
	case *pb.OpenResponse_GrantLost:
		what = m.GrantLost.GetRequestId()
	case *pb.OpenResponse_BeatEcho:
		what = "echo " + string(rune('0'+m.BeatEcho.GetNumber()))
	case *pb.OpenResponse_StateChanged:
		what = m.StateChanged.GetState().String()
	}
	s.list = append(s.list, what)
	return s.err
}

func grantLost(id string) *pb.OpenResponse {
	return &pb.OpenResponse{Message: &pb.OpenResponse_GrantLost{GrantLost: &pb.GrantLost{RequestId: id}}}
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

// While one message is sent, the next ones wait. Only the latest heartbeat and the latest
// state are sent, and the loss comes last.
func TestOutboxSendsInOrderAndTheLossLast(t *testing.T) {
	s := newSent()
	s.begun, s.free = make(chan struct{}, 9), make(chan struct{})
	s.put(grantLost("a"))
	<-s.begun
	s.put(grantLost("b"))
	s.heartbeat(1)
	s.change(state(pb.State_STATE_SUSPENDED))
	s.put(grantLost("c"))
	s.change(state(pb.State_STATE_CONNECTED))
	s.heartbeat(2)
	heard := make(chan struct{})
	s.end(state(pb.State_STATE_LOST), func() { <-heard })
	s.end(state(pb.State_STATE_SUSPENDED), func() { t.Error("the second end counts") })
	close(s.free)
	select {
	case <-s.over:
		t.Fatal("over before the host has read the loss")
	default:
	}
	close(heard)
	must.Do(t, <-s.over)
	s.put(grantLost("d"))
	s.heartbeat(3)
	s.change(state(pb.State_STATE_CONNECTED))
	want := []string{"a", "b", "c", "STATE_CONNECTED", "echo 2", "STATE_LOST"}
	expect(t, s, want...)
}

// A goroutine that has nothing more to send ends. A later message starts another.
func TestOutboxSendsWhatComesLater(t *testing.T) {
	s := newSent()
	s.put(grantLost("a"))
	expect(t, s, "a")
	s.heartbeat(1)
	expect(t, s, "a", "echo 1")
	running := false
	s.run = func(func()) { running = true }
	if s.heartbeat(2); !running {
		t.Error("no goroutine was started")
	}
}

func TestOutboxEndsWithItsStream(t *testing.T) {
	s := newSent()
	s.err = errors.New("the stream is broken")
	s.put(grantLost("a"))
	if err := <-s.over; err != s.err {
		t.Fatal(err)
	}
	s.put(grantLost("b"))
	s.end(state(pb.State_STATE_LOST), func() { t.Error("then was called on a broken stream") })
	expect(t, s, "a")
}

// Losses of grants fill the outbox. The loss of the session is still sent, and nothing else.
func TestFullOutboxKeepsOnlyTheLastMessage(t *testing.T) {
	s := newSent()
	s.begun, s.free = make(chan struct{}, 9), make(chan struct{})
	s.put(grantLost("a"))
	<-s.begun
	const each = 1 << 20
	for range s.limit/each - 1 {
		s.put(grantLost(strings.Repeat("x", each)))
	}
	s.mu.Lock()
	if s.fulls > 0 || len(s.queue) != s.limit/each-1 {
		t.Errorf("full %d times with %d bytes", s.fulls, s.size)
	}
	s.mu.Unlock()
	for range 3 {
		s.put(grantLost(strings.Repeat("x", each)))
	}
	if len(s.queue)+s.size != 0 {
		t.Errorf("%d messages and %d bytes are kept", len(s.queue), s.size)
	}
	s.end(state(pb.State_STATE_LOST), func() {})
	close(s.free)
	expect(t, s, "a", "STATE_LOST")
	if s.fulls != 1 {
		t.Errorf("unread was called %d times", s.fulls)
	}
}

// Messages of the smallest size count too, so their number is bounded.
func TestOutboxCountsMessages(t *testing.T) {
	s := newSent()
	s.begun, s.free = make(chan struct{}, 9), make(chan struct{})
	s.put(grantLost("a"))
	<-s.begun
	for range s.limit / messageOverhead {
		s.put(grantLost(""))
	}
	if !s.full {
		t.Errorf("%d messages are kept", len(s.queue))
	}
	close(s.free)
	expect(t, s, "a")
}

// Grants that are lost while nothing can be sent are all reported.
func TestEachLossIsReported(t *testing.T) {
	ss, send, lost := &session{}, func() {}, []string(nil)
	ss.out.limit = MaxUnsent
	ss.out.start(func(m *pb.OpenResponse) error {
		lost = append(lost, m.GetGrantLost().GetRequestId())
		return nil
	}, nil, nil, func(work func()) { send = work })
	ss.reportLoss(&acquisition{id: "a"}, recipes.ErrRemoved)
	ss.reportLoss(&acquisition{id: "b"}, recipes.ErrRemoved)
	send()
	if want := []string{"a", "b"}; !slices.Equal(lost, want) {
		t.Errorf("reported %q; want %q", lost, want)
	}
}
