package conn

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lease"
)

// Config is what a Wire needs of its session. The functions must not block.
type Config struct {
	recipes.SessionConfig
	Dial     DialFunc        // nil reaches servers by the network
	Identity string          // a digest user and its password, or "": see Sender.Identified
	Lease    *lease.Lease    // is told of the contacts
	Life     context.Context // ends when the session is lost, with the reason as its cause

	Accepted  func(id int64) bool            // a connection, into that session; false: it is another one
	Connected func()                         // such a connection, or its credentials where they are given again
	Suspended func()                         // the connection has ended
	Lost      func(reason error)             // the server has ended the session
	Fired     func(event Event, path string) // a watch, at the server's path
}

// Event is what a watch tells.
type Event int32

// What a watch tells of a znode.
const (
	NodeCreated     Event = 1
	NodeDeleted     Event = 2
	DataChanged     Event = 3
	ChildrenChanged Event = 4
)

// Wire is all connections of one session, and what is known from their bytes.
type Wire struct {
	Config
	Counters Counters

	dialer *dialer
	zk     *zk.Conn
	ended  <-chan zk.Event // closed when go-zookeeper's goroutines are gone

	lastZxid  atomic.Int64 // last transaction seen in a reply
	sessionID atomic.Int64 // of the latest handshake
	password  atomic.Pointer[[]byte]
	closed    chan struct{}
	closeOnce sync.Once

	// reauth is set when connections after the first give credentials before
	// anything else. Such a connection counts only when they were accepted: one
	// that fails there again and again must not keep the session alive.
	reauth       atomic.Bool
	authCode     atomic.Int32 // what the server has answered to credentials
	refused      atomic.Bool  // a server does not take the session's identity
	noCreate2    atomic.Bool  // a server does not know create2
	containers   atomic.Bool  // a server knows containers, so it is 3.5 or later
	noContainers atomic.Bool  // a server does not know containers

	resumed []byte      // the connect request of a session that was resumed; nil for others
	spared  atomic.Bool // the session must not be closed at the server
}

// New makes the wire of a session that has sent nothing.
func New(cfg Config) (*Wire, error) {
	w := &Wire{Config: cfg, closed: make(chan struct{})}
	var err error
	w.dialer, err = newDialer(w)
	return w, err
}

const (
	// maxLibraryReply is more than the largest reply that go-zookeeper gets: it has a
	// header and nothing else.
	maxLibraryReply = 128
	// librarySlack is more than go-zookeeper's requests have beside credentials.
	librarySlack = 128
)

// Connect starts go-zookeeper.
func (w *Wire) Connect() (err error) {
	w.zk, w.ended, err = zk.Connect(w.Servers, w.SessionTimeout,
		zk.WithHostProvider(w.dialer),
		zk.WithDialer(w.dialer.Dial),
		zk.WithEventCallback(w.callback),
		zk.WithLogger(zkLogger{w.Logger}),
		zk.WithLogInfo(w.Logger.IsDebug()),
		// Both are allocated at once for each connection. Of what go-zookeeper
		// still does, credentials are the largest. Encoding into a buffer that is
		// just too short can panic.
		zk.WithMaxBufferSize(maxLibraryReply),
		zk.WithMaxConnBufferSize(librarySlack+len(w.credentials())),
	)
	return err
}

// credentials are the user and the password that the session was configured with.
func (w *Wire) credentials() []byte {
	if w.Digest == nil {
		return nil
	}
	return []byte(w.Digest.User + ":" + w.Digest.Password)
}

// callback receives go-zookeeper's events on its own goroutines.
func (w *Wire) callback(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateHasSession:
		if w.Accepted(w.ID()) && !w.reauth.Load() {
			w.connected()
		}
	case zk.StateDisconnected:
		w.Suspended()
	case zk.StateExpired:
		w.Lost(recipes.ErrExpired)
	}
}

// authReplied runs when the server has answered the credentials that a
// connection after the first gives again.
func (w *Wire) authReplied(accepted bool) {
	if accepted {
		w.connected()
	} else {
		w.Lost(recipes.ErrAuthFailed)
	}
}

// connected runs when a connection can be used.
func (w *Wire) connected() {
	w.dialer.established()
	w.Connected()
}

// Authenticate gives the configured credentials, by go-zookeeper, which gives them again
// on each connection.
func (w *Wire) Authenticate() error {
	err := w.zk.AddAuth("digest", w.credentials())
	if code := Code(w.authCode.Load()); err != nil && code != 0 {
		return code
	}
	w.reauth.Store(err == nil)
	return err
}

// ID is the session of the latest handshake.
func (w *Wire) ID() int64 { return w.sessionID.Load() }

// Password is that of the latest handshake, or nil.
func (w *Wire) Password() []byte {
	if password := w.password.Load(); password != nil {
		return *password
	}
	return nil
}

// LastZxid is the last transaction seen in a reply.
func (w *Wire) LastZxid() int64 { return w.lastZxid.Load() }

// Current is the present connection, established or not, or nil.
func (w *Wire) Current() *Conn { return w.dialer.connection() }

// LastError is what the last attempt to connect has met, or nil.
func (w *Wire) LastError() error { return w.dialer.lastError() }

// Identified reports whether the session has an identity that servers take, as far as is
// known.
func (w *Wire) Identified() bool { return w.Identity != "" && !w.refused.Load() }

// RefuseIdentity notes that servers do not take the session's identity.
func (w *Wire) RefuseIdentity() { w.refused.Store(true) }

// Creates2 reports whether servers take Create2, as far as is known.
func (w *Wire) Creates2() bool { return !w.noCreate2.Load() }

// RemovesWatches reports whether the servers take RemoveDataWatch, as those since 3.5 do,
// and whether that is known.
func (w *Wire) RemovesWatches() (removes, known bool) {
	if w.noContainers.Load() || w.noCreate2.Load() {
		return false, true
	}
	containers := w.containers.Load()
	return containers, containers
}

// Resume has the session be one that was opened before. Nothing was sent yet.
func (w *Wire) Resume(id int64, password []byte, timeout time.Duration) {
	w.Lease.SetTimeout(timeout)
	w.sessionID.Store(id)
	w.resumed = connectRequest(int32(timeout.Milliseconds()), id, password)
}

// Spare says whether the session must not be closed at the server.
func (w *Wire) Spare(spared bool) { w.spared.Store(spared) }

// resuming puts the ticket into the connect request of a connection that asks for a new
// session. go-zookeeper does that until a server has answered, and after the session
// has expired. So no connection can ever open another session.
func (w *Wire) resuming(frame []byte) []byte {
	const idAt = lengthSize + 4 + 8 + 4
	if w.resumed == nil || len(frame) < idAt+8 || binary.BigEndian.Uint64(frame[idAt:]) != 0 {
		return frame
	}
	return w.resumed
}

// zkLogger gives go-zookeeper's messages to the session's logger.
type zkLogger struct{ log hclog.Logger }

func (l zkLogger) Printf(format string, args ...any) {
	l.log.Debug(fmt.Sprintf("go-zookeeper: "+format, args...))
}
