package carry

import (
	"sync"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

type outbox struct {
	framed *framed

	mu      sync.Mutex
	read    sync.Cond // signalled when bytes shrinks or failed is set
	out     Sender[*pb.CarryResponse]
	failed  bool             // the connection has ended
	bytes   int              // size of the answers that wait or are being sent, by answerSize
	huge    int              // size of the answer above MaxUnsent among them, or 0
	message pb.CarryResponse // the message being sent; reused
	whole   []*pb.Answer
	cut     []*pb.Answer // long answers, sent in parts; each payload is what remains to be sent
}

// newOutbox returns an outbox. rest runs a function in another goroutine.
func newOutbox(f *framed, rest func(func())) *outbox {
	o := &outbox{framed: f}
	o.read.L = &o.mu
	o.out = Sender[*pb.CarryResponse]{
		Mu: &o.mu, Next: o.batch, Sent: o.sent, Rest: rest,
		Send: func(m *pb.CarryResponse) error { return f.send(m) },
	}
	return o
}

// put sends an answer, or leaves it to the goroutine that is sending. Answers that arrive
// while one is sent share a message. If too much waits already, the connection ends, and the
// host does not know the outcome of the calls whose answers are lost.
//
// An answer above MaxUnsent, such as a long list, waits here for its turn, one at a time. It does not
// count as too much.
//
// put sends at most most messages itself.
func (o *outbox) put(a *pb.Answer, most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	huge := len(a.Payload) > MaxUnsent
	for huge && o.bytes > MaxUnsent && !o.failed {
		o.read.Wait()
	}
	if o.failed {
		return
	}
	if huge {
		o.huge = answerSize(a)
	}
	if o.bytes > MaxKept+o.huge {
		o.fail()
		_ = o.framed.conn.Close() // makes a blocked send fail
		return
	}
	if len(a.Payload) > part {
		o.cut = append(o.cut, a)
	} else {
		o.whole = append(o.whole, a)
	}
	o.bytes += answerSize(a)
	o.out.Flush(most)
}

// batch takes the answers for one message, which is valid until the next call. The caller holds
// mu. Whole answers come first, followed by one part of a long answer. So no answer waits for a
// long one, and a long one is not delayed for ever.
func (o *outbox) batch() (m *pb.CarryResponse, ok bool) {
	n, room := 0, part
	for n < len(o.whole) && (n == 0 || room > 0) {
		room -= answerSize(o.whole[n])
		n++
	}
	m = &o.message
	m.Answers = append(m.Answers[:0], o.whole[:n]...)
	o.whole = dropFirst(o.whole, n)
	if len(o.cut) > 0 {
		m.Answers = append(m.Answers, o.nextPart())
	}
	return m, len(m.Answers) > 0
}

func answerSize(a *pb.Answer) int { return len(a.GetPayload()) + len(a.GetStatus()) + answerOverhead }

// nextPart takes a part of a long answer, and moves that answer behind the other long ones.
// The caller holds mu.
func (o *outbox) nextPart() *pb.Answer {
	a := o.cut[0]
	o.cut = dropFirst(o.cut, 1)
	if len(a.Payload) <= part {
		if len(o.cut) == 0 {
			o.huge = 0
		}
		return a
	}
	next := &pb.Answer{Id: a.Id, Payload: a.Payload[:part], More: true}
	a.Payload = a.Payload[part:]
	o.cut = append(o.cut, a)
	o.bytes += answerOverhead // a part counts as an answer
	return next
}

// sent records that a message was sent, or could not be, and reports whether more waits. The caller
// holds mu.
func (o *outbox) sent(m *pb.CarryResponse, err error) (more bool) {
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
	return len(o.whole)+len(o.cut) > 0
}

// fail drops what waits. The caller holds mu.
func (o *outbox) fail() {
	o.failed, o.whole, o.cut = true, nil, nil
	o.read.Broadcast()
}

// awaitSpace blocks while more than MaxUnsent waits.
func (o *outbox) awaitSpace() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.bytes > MaxUnsent && !o.failed {
		o.read.Wait()
	}
}
