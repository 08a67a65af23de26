package session

import (
	"sync"
	"sync/atomic"
	"time"
)

// wire is what a session knows from the bytes of all its connections.
type wire struct {
	maxPacket int
	start     time.Time    // origin of the monotonic offsets below
	contact   atomic.Int64 // when the last answered request was sent, as an offset from start
	lastZxid  atomic.Int64 // last transaction seen in a reply
	sessionID atomic.Int64 // of the latest handshake
	password  atomic.Pointer[[]byte]
	timeout   atomic.Int64 // negotiated in the latest handshake, in nanoseconds
	closed    chan struct{}
	closeOnce sync.Once

	// reauth is set when connections after the first give credentials before
	// anything else. Such a connection counts only when they were accepted: one
	// that fails there again and again must not keep the session alive.
	reauth      atomic.Bool
	authReplied func(accepted bool)
	refused     atomic.Bool // a server does not take the session's identity
	counters    counters
}

func newWire(maxPacket int) *wire {
	return &wire{maxPacket: maxPacket, start: time.Now(), closed: make(chan struct{})}
}

// isClosed reports whether the server has confirmed that the session is closed.
func (w *wire) isClosed() bool {
	select {
	case <-w.closed:
		return true
	default:
		return false
	}
}

func (w *wire) setClosed() { w.closeOnce.Do(func() { close(w.closed) }) }

// lastContact is the moment from which the server may count the session's
// timeout at the earliest: when the last request that was answered was sent.
func (w *wire) lastContact() time.Time { return w.start.Add(time.Duration(w.contact.Load())) }

// heard records that a request sent at that time was answered.
func (w *wire) heard(sent time.Time) {
	offset := int64(sent.Sub(w.start))
	for {
		old := w.contact.Load()
		if offset <= old || w.contact.CompareAndSwap(old, offset) {
			return
		}
	}
}
