package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lease"
)

// Config holds what a Wire needs from its session. The functions must not block.
type Config struct {
	recipes.SessionConfig
	Dial     DialFunc        // nil: the network
	Identity string          // a digest user and its password, or "": see Request.Identified
	Lease    *lease.Lease    // receives the contacts
	Life     context.Context // done when the session is lost; the cause is the reason

	Accepted  func(id int64)                 // a server accepted a connection into the session
	Connected func()                         // the connection can be used
	Suspended func()                         // the connection has ended
	Lost      func(reason error)             // the server has ended the session
	Fired     func(event Event, path string) // a watch has fired; path is the server's
}

// Event is the kind of change that a watch reports.
type Event int32

// Changes of a znode.
const (
	NodeCreated     Event = 1
	NodeDeleted     Event = 2
	DataChanged     Event = 3
	ChildrenChanged Event = 4
)

// Wire holds the connections of one session, and what their traffic has shown.
type Wire struct {
	Config
	Counters Counters

	dialer *dialer
	zk     *zk.Conn
	ended  <-chan zk.Event // closed when go-zookeeper's goroutines have ended

	lastZxid  atomic.Int64 // of the last transaction seen
	unseen    atomic.Bool  // a transaction after lastZxid may have been seen: see Conn.catchUp
	sessionID atomic.Int64 // of the latest handshake
	password  atomic.Pointer[[]byte]
	closed    chan struct{}
	closeOnce sync.Once

	keeper       atomic.Bool // the servers are ClickHouse Keeper
	refused      atomic.Bool // a server has refused the session's identity
	noCreate2    atomic.Bool // a server does not support create2
	containers   atomic.Bool // a server supports containers, so it is 3.5 or later
	noContainers atomic.Bool // a server does not support containers

	resumed []byte      // the connect request of a resumed session; nil otherwise
	spared  atomic.Bool // the session must not be closed at the server
}

// New returns the wire of a session. It sends nothing.
func New(cfg Config) (*Wire, error) {
	w := &Wire{Config: cfg, closed: make(chan struct{})}
	var err error
	w.dialer, err = newDialer(w)
	return w, err
}

const (
	// maxLibraryReply exceeds the size of every reply to a request of go-zookeeper: each has a
	// header and nothing else.
	maxLibraryReply = 128
	// maxLibraryRequest exceeds the size of go-zookeeper's requests.
	maxLibraryRequest = 128
)

// Connect starts go-zookeeper.
func (w *Wire) Connect() (err error) {
	w.zk, w.ended, err = zk.Connect(w.Servers, w.SessionTimeout,
		zk.WithHostProvider(w.dialer),
		zk.WithDialer(w.dialer.Dial),
		zk.WithEventCallback(w.callback),
		zk.WithLogger(zkLogger{w.Logger}),
		zk.WithLogInfo(w.Logger.IsDebug()),
		// go-zookeeper allocates both buffers at once for each connection. Encoding into a buffer
		// that is slightly too small can panic.
		zk.WithMaxBufferSize(maxLibraryReply),
		zk.WithMaxConnBufferSize(maxLibraryRequest),
	)
	return err
}

// callback handles go-zookeeper's events, on that library's goroutines.
func (w *Wire) callback(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateHasSession:
		w.Accepted(w.ID())
		w.dialer.established()
		w.Connected()
	case zk.StateDisconnected:
		w.Suspended()
	case zk.StateExpired:
		w.Lost(recipes.ErrExpired)
	}
}

// ID returns the session id of the latest handshake.
func (w *Wire) ID() int64 { return w.sessionID.Load() }

// Password returns the password of the latest handshake, or nil.
func (w *Wire) Password() []byte {
	if password := w.password.Load(); password != nil {
		return *password
	}
	return nil
}

// LastZxid returns the id of the last transaction seen.
func (w *Wire) LastZxid() int64 { return w.lastZxid.Load() }

// saw records the transaction id in the header of a reply. The server has then sent the events
// of all transactions up to that.
func (w *Wire) saw(zxid int64) {
	w.lastZxid.Store(max(w.lastZxid.Load(), zxid))
	w.unseen.Store(false)
}

// sawEvent records the transaction id in the header of a watch event. Before ZooKeeper 3.9 it is
// -1, and later too if setWatches has caused the event.
func (w *Wire) sawEvent(zxid int64) {
	if zxid <= 0 {
		w.unseen.Store(true)
		return
	}
	w.lastZxid.Store(max(w.lastZxid.Load(), zxid))
}

// Current returns the current connection, established or not, or nil.
func (w *Wire) Current() *Conn {
	w.dialer.mu.Lock()
	defer w.dialer.mu.Unlock()
	return w.dialer.current
}

// LastError returns the error of the last attempt to connect, or nil.
func (w *Wire) LastError() error {
	w.dialer.mu.Lock()
	defer w.dialer.mu.Unlock()
	return w.dialer.last
}

// Identified reports whether the session has an identity that no server has refused so far.
func (w *Wire) Identified() bool { return w.Identity != "" && !w.refused.Load() }

// RefuseIdentity records that servers refuse the session's identity.
func (w *Wire) RefuseIdentity() { w.refused.Store(true) }

// CreatesBare reports whether the session can create bare znodes: it has an identity, and servers
// support Create2. It is true until a server has shown the opposite.
func (w *Wire) CreatesBare() bool {
	return !w.Keeper() && w.Identity != "" && !w.refused.Load() && !w.noCreate2.Load()
}

// RemovesWatches reports whether the servers support RemoveDataWatch, as they do since 3.5, and
// whether that is known.
func (w *Wire) RemovesWatches() (removes, known bool) {
	if w.Keeper() || w.noContainers.Load() || w.noCreate2.Load() {
		return false, true
	}
	containers := w.containers.Load()
	return containers, containers
}

// Resume makes Connect resume an existing session. Call it before Connect.
func (w *Wire) Resume(id int64, password []byte, timeout time.Duration) {
	w.Lease.SetTimeout(timeout)
	w.sessionID.Store(id)
	w.resumed = connectRequest(int32(timeout.Milliseconds()), id, password)
	w.unseen.Store(true)
}

// Spare sets whether the session must not be closed at the server.
func (w *Wire) Spare(spared bool) { w.spared.Store(spared) }

// resuming replaces a connect request for a new session by one for the resumed session.
// go-zookeeper asks for a new session until a server has answered, and again after an expiry.
// So no connection can ever open another session.
func (w *Wire) resuming(frame []byte) []byte {
	if w.resumed == nil || len(frame) < connectIDAt+8 || sessionOf(frame) != 0 {
		return frame
	}
	return w.resumed
}

// zkLogger passes go-zookeeper's messages to the session's logger.
type zkLogger struct{ log hclog.Logger }

func (l zkLogger) Printf(format string, args ...any) {
	l.log.Debug(fmt.Sprintf("go-zookeeper: "+format, args...))
}

// Shut closes the gate: the session makes no more connections.
func (w *Wire) Shut() { w.dialer.shut() }

// Drop closes the present connection, if any.
func (w *Wire) Drop() {
	if c := w.Current(); c != nil {
		c.Close()
	}
}

// Close makes go-zookeeper send closeSession and stop. It waits at most a second for the
// answer.
func (w *Wire) Close() { w.zk.Close() }

// Begun reports whether Connect was called.
func (w *Wire) Begun() bool { return w.zk != nil }

// Wait returns when go-zookeeper's goroutines have ended.
func (w *Wire) Wait() {
	for range w.ended {
	}
}

// Closed is closed when the server has confirmed that the session is closed.
func (w *Wire) Closed() <-chan struct{} { return w.closed }

func (w *Wire) setClosed() { w.closeOnce.Do(func() { close(w.closed) }) }

// SendClose sends closeSession if the handshake was sent on this connection. The server accepts
// it even if its reply to the handshake has not arrived yet.
func (c *Conn) SendClose() {
	c.mu.Lock()
	sends := !c.began.IsZero() && !c.wire.spared.Load()
	if sends {
		c.note(sent{xid: closeXid, op: opClose, at: time.Now()})
	}
	c.mu.Unlock()
	if sends {
		_ = c.write(closeRequest())
	}
}

// CloseSession closes the session at the server over new connections, after go-zookeeper has
// stopped. go-zookeeper gives up closing when its connection ends, and the session's ephemeral
// znodes would remain until the session expires.
func (w *Wire) CloseSession(ctx context.Context, id int64) error {
	for {
		err := w.closeAgain(ctx, id)
		if err == nil || ctx.Err() != nil || errors.Is(err, recipes.ErrAuthFailed) || errors.Is(err, recipes.ErrNotContinued) {
			return err
		}
		w.Logger.Debug("closing the session again", "error", err)
	}
}

// closeAgain resumes the session and closes it. A server refuses to resume a session that has
// already ended.
func (w *Wire) closeAgain(ctx context.Context, id int64) error {
	address, _ := w.dialer.Next()
	c, err := w.dialer.connect(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	password := w.Password()
	if password == nil {
		return errors.New("no password")
	}
	if _, err := c.Write(connectRequest(int32(w.Lease.Timeout().Milliseconds()), id, password)); err != nil {
		return err
	}
	if err := skipFrame(c); err != nil {
		return err
	}
	if w.ID() != id {
		w.setClosed()
		return nil
	}
	if _, err := c.Write(closeRequest()); err != nil {
		return err
	}
	for !Happened(w.closed) {
		if err := skipFrame(c); err != nil {
			return err
		}
	}
	return nil
}

func skipFrame(r io.Reader) error {
	var length [lengthSize]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, r, int64(binary.BigEndian.Uint32(length[:])))
	return err
}

// connectRequest returns the frame that resumes a session. Conn.Write fills in lastZxidSeen.
func connectRequest(timeout int32, id int64, password []byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+8+4+8+lengthSize+len(password)))
	frame = binary.BigEndian.AppendUint32(frame, 0) // protocol version
	frame = binary.BigEndian.AppendUint64(frame, 0) // lastZxidSeen
	frame = binary.BigEndian.AppendUint32(frame, uint32(timeout))
	frame = binary.BigEndian.AppendUint64(frame, uint64(id))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(password)))
	return append(frame, password...)
}

const closeXid = 1

func closeRequest() []byte {
	op := int32(opClose)
	frame := binary.BigEndian.AppendUint32(nil, 8)
	frame = binary.BigEndian.AppendUint32(frame, closeXid)
	return binary.BigEndian.AppendUint32(frame, uint32(op))
}
