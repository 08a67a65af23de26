package carry

import (
	"testing"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// An answer no longer counts after it was sent, whether it was sent whole or in parts.
func TestSentAnswersDoNotCount(t *testing.T) {
	parts := 0
	o := newOutbox(sink(func(m *pb.CarryResponse) { parts += len(m.GetAnswers()) }))
	o.put(&pb.Answer{Id: 1})
	o.put(&pb.Answer{Id: 2, Payload: make([]byte, 5*part), Status: []byte("because")})
	o.put(&pb.Answer{Id: 3, Status: []byte("because")})
	if parts != 7 || o.bytes != 0 {
		t.Errorf("%d parts were sent, and %d bytes are left", parts, o.bytes)
	}
}

// The wait for sent answers ends with the connection, because no more are sent.
func TestAFailedOutboxEndsTheWait(t *testing.T) {
	o := newOutbox(sink(func(*pb.CarryResponse) {}))
	o.bytes = MaxUnsent + 1
	o.mu.Lock()
	o.fail()
	o.mu.Unlock()
	o.wait()
}
