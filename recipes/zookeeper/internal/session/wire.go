package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// wire is what a session knows from the bytes of all its connections.
type wire struct {
	fire        func(event zk.EventType, path string) // is told of watch events; must not block
	start       time.Time                             // origin of the monotonic offsets below
	contact     atomic.Int64                          // when the last answered request was sent, as an offset from start
	known       atomic.Int64                          // when the last contact was sent that the leader is known to have
	leaderAsked atomic.Int64                          // when the last request was sent that the leader has to answer
	lastZxid    atomic.Int64                          // last transaction seen in a reply
	sessionID   atomic.Int64                          // of the latest handshake
	password    atomic.Pointer[[]byte]
	timeout     atomic.Int64 // negotiated in the latest handshake, in nanoseconds
	closed      chan struct{}
	closeOnce   sync.Once

	// reauth is set when connections after the first give credentials before
	// anything else. Such a connection counts only when they were accepted: one
	// that fails there again and again must not keep the session alive.
	reauth       atomic.Bool
	authReplied  func(accepted bool)
	refused      atomic.Bool // a server does not take the session's identity
	noPlaces     atomic.Bool // a server does not know create2
	containers   atomic.Bool // a server knows containers, so it is 3.5 or later
	noContainers atomic.Bool // a server does not know containers

	resumed []byte      // the connect request of a session that was resumed; nil for others
	spared  atomic.Bool // the session must not be closed at the server

	counters counters
}

func newWire(fire func(zk.EventType, string)) *wire {
	return &wire{fire: fire, start: time.Now(), closed: make(chan struct{})}
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

// at is the time of an offset.
func (w *wire) at(offset int64) time.Time { return w.start.Add(time.Duration(offset)) }

// sessionTimeout is what the latest handshake has granted; 0 before the first.
func (w *wire) sessionTimeout() time.Duration { return time.Duration(w.timeout.Load()) }

// heard records that a request sent at that time was answered.
func (w *wire) heard(sent time.Time) { raise(&w.contact, w.offset(sent)) }

// know records that the leader has heard of the session since that time.
func (w *wire) know(sent time.Duration) { raise(&w.known, sent) }

func raise(to *atomic.Int64, offset time.Duration) {
	for {
		old := to.Load()
		if int64(offset) <= old || to.CompareAndSwap(old, int64(offset)) {
			return
		}
	}
}
