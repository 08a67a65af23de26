package carry

import (
	"sync"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// outbox holds answers until they are sent.
type outbox struct {
	framed *framed

	mu      sync.Mutex
	read    sync.Cond        // bytes are fewer, or failed is set
	sending bool             // a goroutine sends, and will send what waits
	failed  bool             // the connection has ended
	bytes   int              // of the answers that wait or are being sent, by answerSize
	message pb.CarryResponse // that is sent; used again
	whole   []*pb.Answer
	cut     []*pb.Answer // whose answers are sent in parts; payload is what is left
}

func newOutbox(f *framed) *outbox {
	o := &outbox{framed: f}
	o.read.L = &o.mu
	return o
}

// put sends an answer, or leaves it to the goroutine that is sending. Answers that
// come while one is sent go in one message. If too much waits before it, the connection
// ends: the answers that are lost had calls whose outcome the host does not know then.
func (o *outbox) put(a *pb.Answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed {
		return
	}
	if o.bytes > MaxKept {
		o.fail()
		_ = o.framed.conn.Close() // a send that does not return fails
		return
	}
	if len(a.Payload) > part {
		o.cut = append(o.cut, a)
	} else {
		o.whole = append(o.whole, a)
	}
	o.bytes += answerSize(a)
	if o.sending {
		return
	}
	o.sending = true
	for m := o.batch(); m != nil && !o.failed; m = o.batch() {
		o.mu.Unlock()
		err := o.framed.send(m)
		o.mu.Lock()
		o.sent(m, err)
	}
	o.sending = false
}

// batch takes what goes into one message, which is good until the next one; nil if
// nothing waits. It needs mu. Whole
// answers go first, and one part of another. So no answer waits for a long one, and
// a long one is not held up for ever.
func (o *outbox) batch() *pb.CarryResponse {
	n, room := 0, part
	for n < len(o.whole) && (n == 0 || room > 0) {
		room -= answerSize(o.whole[n])
		n++
	}
	m := &o.message
	m.Answers = append(m.Answers[:0], o.whole[:n]...)
	o.whole = without(o.whole, n)
	if len(o.cut) > 0 {
		m.Answers = append(m.Answers, o.nextPart())
	}
	if len(m.Answers) == 0 {
		return nil
	}
	return m
}

func answerSize(a *pb.Answer) int { return len(a.GetPayload()) + len(a.GetStatus()) + answerOverhead }

// nextPart takes a part of a long answer, and leaves the others a turn. It needs mu.
func (o *outbox) nextPart() *pb.Answer {
	a := o.cut[0]
	o.cut = without(o.cut, 1)
	if len(a.Payload) <= part {
		return a
	}
	next := &pb.Answer{Id: a.Id, Payload: a.Payload[:part], More: true}
	a.Payload = a.Payload[part:]
	o.cut = append(o.cut, a)
	o.bytes += answerOverhead // there is one answer more
	return next
}

// sent notes that a message was sent, or could not be. It needs mu.
func (o *outbox) sent(m *pb.CarryResponse, err error) {
	before := o.bytes
	for _, a := range m.GetAnswers() {
		o.bytes -= answerSize(a)
	}
	if err != nil {
		o.fail()
	}
	if before > MaxUnsent {
		o.read.Broadcast()
	}
}

// fail gives up what waits. It needs mu.
func (o *outbox) fail() {
	o.failed, o.whole, o.cut = true, nil, nil
	o.read.Broadcast()
}

// wait waits while too much is to be sent.
func (o *outbox) wait() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.bytes > MaxUnsent && !o.failed {
		o.read.Wait()
	}
}
