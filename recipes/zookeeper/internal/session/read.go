package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Stat is ZooKeeper's record of a znode.
type Stat = conn.Stat

// Node is a znode's data and record.
type Node = conn.Node

// call runs f until ctx is done or the session is lost. Then f continues in its goroutine,
// because its request may still be answered, and its result is dropped.
func call[T any](ctx context.Context, s *Session, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var zero T
	done := make(chan result, 1)
	if !s.start(func() {
		value, err := f()
		done <- result{value, err}
	}) {
		return zero, s.Err()
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-s.Done():
		return zero, s.Err()
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}

// start runs f, which sends requests, in a goroutine. It returns false if the session has ended.
func (s *Session) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.calls.Go(f)
	return true
}

// exchangeOn sends requests on a connection and returns the replies, or returns when ctx is done.
func (s *Session) exchangeOn(ctx context.Context, c *conn.Conn, requests ...conn.Request) ([]conn.Reply, error) {
	if b, err := s.sendNow(c, requests); err != nil {
		return nil, err
	} else if b != nil {
		return b.Await(ctx)
	}
	return call(ctx, s, func() ([]conn.Reply, error) { return c.Exchange(context.Background(), requests...) })
}

// sendNow is conn.SendNow while the session lasts.
func (s *Session) sendNow(c *conn.Conn, requests []conn.Request) (*conn.Batch, error) {
	if s.ctx.Err() != nil {
		return nil, nil
	}
	return c.SendNow(requests...)
}

// ask sends a request that may be repeated, until it is answered.
func ask[T any](ctx context.Context, s *Session, what, path string, request conn.Request, read func(conn.Reply) (T, error)) (T, error) {
	return readAgain(ctx, s, what, path, func(ctx context.Context) (none T, _ error) {
		replies, err := s.exchangeOn(ctx, s.wire.Current(), request)
		if err != nil {
			return none, err
		}
		return read(replies[0])
	})
}

// readWith is ask for a request that f sends.
func readWith[T any](ctx context.Context, s *Session, what, path string, f func() (T, error)) (T, error) {
	return readAgain(ctx, s, what, path, func(ctx context.Context) (T, error) { return call(ctx, s, f) })
}

// readAgain is readWith for an f that returns when ctx is done.
func readAgain[T any](ctx context.Context, s *Session, what, path string, f func(context.Context) (T, error)) (T, error) {
	var zero T
	for connection := 0; ; {
		var err error
		if connection, _, err = s.connectedAfter(ctx, connection); err != nil {
			return zero, err
		}
		value, err := f(ctx)
		switch {
		case err == nil:
			return value, nil
		case s.Err() != nil:
			return zero, s.Err()
		case ctx.Err() != nil:
			return zero, s.Interrupted(what+" "+path, ctx)
		case conn.Lost(err):
			continue
		}
		return zero, answer(what, path, err)
	}
}

// paced is ask for a read that sets no watch: SessionConfig.ReadsPerSecond delays it.
func paced[T any](ctx context.Context, s *Session, what, path string, request conn.Request, read func(conn.Reply) (T, error)) (none T, _ error) {
	if err := s.awaitTurn(ctx, 1, what, path); err != nil {
		return none, err
	}
	return ask(ctx, s, what, path, request, read)
}

// awaitTurn waits until SessionConfig.ReadsPerSecond allows n reads.
func (s *Session) awaitTurn(ctx context.Context, n int, what, path string) error {
	if s.pace == nil {
		return nil
	}
	reservation := s.pace.ReserveN(time.Now(), n)
	timer := time.NewTimer(reservation.Delay())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.Done():
		return s.Err()
	case <-ctx.Done():
		reservation.Cancel() // otherwise later reads would wait for it
		return s.Interrupted(what+" "+path, ctx)
	}
}

// ReadsAtOnce is how many reads of one call are sent in one write, before any of their replies.
// It bounds what a server must queue for the session, and how long a ping waits behind them.
const ReadsAtOnce = 128

// newPace returns the limiter of SessionConfig.ReadsPerSecond. Reads of one call are sent together
// if they are due within 10 ms.
func newPace(reads rate.Limit) *rate.Limiter {
	return rate.NewLimiter(reads, min(max(1, int(reads/100)), ReadsAtOnce))
}

// Read is the answer to one of several reads: a value, or the server's error, such as ErrNoNode.
type Read[T any] struct {
	Value T
	Err   error
}

// GetAll is Get for several znodes. It returns their answers in the order of the paths. An error is
// the call's own, and no answer of the server.
func (s *Session) GetAll(ctx context.Context, paths []string) ([]Read[Node], error) {
	return readAll(ctx, s, "read", paths, conn.Get, conn.Reply.Node)
}

// StatAll is Stat for several znodes, like GetAll.
func (s *Session) StatAll(ctx context.Context, paths []string) ([]Read[Stat], error) {
	return readAll(ctx, s, "read", paths, conn.Exists, conn.Reply.Stat)
}

// ChildrenAll is Children for several znodes, like GetAll.
func (s *Session) ChildrenAll(ctx context.Context, paths []string) ([]Read[[]string], error) {
	names := func(r conn.Reply) ([]string, error) {
		l, err := r.Listing()
		return l.Names, err
	}
	return readAll(ctx, s, "list", paths, conn.Children, names)
}

// readAll sends up to ReadsAtOnce requests in one write. So the time for many reads depends on the
// server, and hardly on the network's round trip. Only one group is outstanding at a time.
func readAll[T any](ctx context.Context, s *Session, what string, paths []string, request func(path string, watch bool) conn.Request, read func(conn.Reply) (T, error)) ([]Read[T], error) {
	most := ReadsAtOnce
	if s.pace != nil {
		most = s.pace.Burst()
	}
	all := make([]Read[T], 0, len(paths))
	for group := range slices.Chunk(paths, most) {
		if err := s.awaitTurn(ctx, len(group), what, group[0]); err != nil {
			return nil, err
		}
		requests := make([]conn.Request, len(group))
		for i, path := range group {
			requests[i] = request(s.full(path), false)
		}
		replies, err := readAgain(ctx, s, what, group[0], func(ctx context.Context) ([]conn.Reply, error) {
			return s.exchangeOn(ctx, s.wire.Current(), requests...)
		})
		if err != nil {
			return nil, err
		}
		for i, reply := range replies {
			value, err := read(reply)
			if err != nil {
				err = answer(what, group[i], err)
			}
			all = append(all, Read[T]{value, err})
		}
	}
	return all, nil
}

// Children returns the names of a znode's children, in no particular order.
// SessionConfig.MaxListing limits the size of the reply, in all functions that list.
func (s *Session) Children(ctx context.Context, path string) ([]string, error) {
	names, _, err := s.List(ctx, path)
	return names, err
}

// List returns the names of a znode's children and the znode's record at that time.
func (s *Session) List(ctx context.Context, path string) ([]string, Stat, error) {
	l, err := paced(ctx, s, "list", path, conn.Children(s.full(path), false), conn.Reply.Listing)
	return l.Names, l.Stat, err
}

// Get returns a znode's data and record, or ErrNoNode.
func (s *Session) Get(ctx context.Context, path string) (Node, error) {
	return paced(ctx, s, "read", path, conn.Get(s.full(path), false), conn.Reply.Node)
}

// Stat returns a znode's record, or ErrNoNode.
func (s *Session) Stat(ctx context.Context, path string) (Stat, error) {
	return paced(ctx, s, "read", path, conn.Exists(s.full(path), false), conn.Reply.Stat)
}

// Sync brings the server of this session up to date with all writes of this session. A follower
// is also brought up to date with all writes that completed earlier. A leader waits for
// nothing: it may not have applied what a follower has already applied and confirmed (observed
// once with 3.8.0 under load). So shortly after Sync, a read on the leader may miss what
// another session has just read.
//
// Assumption: the leader orders the sync behind all requests that the session has sent through
// another server. Every search for a lost creation relies on that. The path need not exist.
func (s *Session) Sync(ctx context.Context, path string) error {
	_, err := ask(ctx, s, "sync", path, conn.Sync(s.full(path)), conn.Reply.Nothing)
	return err
}

// exchange is a group of requests that are sent together. One goroutine may send it and another
// one wait for the replies.
type exchange struct {
	session  *Session
	requests []conn.Request
	prepare  func(context.Context) error // if not nil, runs before each attempt

	sending    *sending
	sent       *conn.Batch // set by await
	failed     error       // why nothing was sent, or sending failed
	connection int         // the number of the connection that was used
}

// sending is one attempt to send requests. done is closed when the other fields are set.
type sending struct {
	done   chan struct{}
	batch  *conn.Batch
	failed error
}

// written is closed.
var written = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// send sends the requests when the session is connected. If it fails, a part may have been
// sent. It does not wait until they are written, because a server that reads nothing could delay
// that beyond ctx. If the connection ends while prepare runs, nothing is sent: the watches that
// prepare has found or joined are gone.
func (a *exchange) send(ctx context.Context) {
	if a.connection, _, a.failed = a.session.connectedAfter(ctx, 0); a.failed != nil {
		return
	}
	c := a.session.wire.Current()
	if a.prepare != nil {
		if a.failed = a.prepare(ctx); a.failed != nil {
			return
		}
	}
	if batch, err := a.session.sendNow(c, a.requests); batch != nil || err != nil {
		a.sending = &sending{done: written, batch: batch, failed: err}
		return
	}
	now, requests := &sending{done: make(chan struct{})}, a.requests
	if !a.session.start(func() {
		defer close(now.done)
		now.batch, now.failed = c.Send(requests...)
	}) {
		a.failed = a.session.Err()
		return
	}
	a.sending = now
}

// await returns the replies to the requests that send has sent.
func (a *exchange) await(ctx context.Context) ([]conn.Reply, error) {
	if a.failed != nil {
		return nil, a.failed
	}
	select {
	case <-a.sending.done:
	case <-ctx.Done():
		if !Happened(a.sending.done) {
			return nil, ctx.Err()
		}
	}
	if a.failed = a.sending.failed; a.failed != nil {
		return nil, a.failed
	}
	a.sent = a.sending.batch
	return a.sent.Await(ctx)
}

// GetW is Get with a watch that fires when the znode is changed or deleted. If the znode does
// not exist no watch is set, so none remains for a creation that never comes.
func (s *Session) GetW(ctx context.Context, path string) (Node, *Watch, error) {
	return readWatched(ctx, s, "read", path, watchKey{path: s.full(path)}, conn.Get, conn.Reply.Node, nil)
}

// ExistsW reports whether a znode exists, with a watch that fires when it is created, changed
// or deleted. If the znode does not exist, the watch lasts until ctx is done: then it fires, if
// it has not, and is removed.
func (s *Session) ExistsW(ctx context.Context, path string) (bool, *Watch, error) {
	key := watchKey{path: s.full(path)}
	return readWatched(ctx, s, "read", path, key, conn.Exists,
		func(r conn.Reply) (bool, error) {
			err := r.Err()
			if errors.Is(err, recipes.ErrNoNode) {
				return false, nil // the server watches for its creation
			}
			return err == nil, err
		},
		func(w *Watch, exists bool) {
			if !exists {
				s.unwatchAfter(ctx, key, w)
			}
		})
}

// ChildrenW is Children with a watch that fires when a child is created or deleted, or the
// znode is deleted.
func (s *Session) ChildrenW(ctx context.Context, path string) ([]string, *Watch, error) {
	names, _, w, err := s.ListW(ctx, path)
	return names, w, err
}

// ListW is List with the watch of ChildrenW.
func (s *Session) ListW(ctx context.Context, path string) ([]string, Stat, *Watch, error) {
	l, w, err := s.childrenW(ctx, "list", path)
	return l.Names, l.Stat, w, err
}

// DeletionW returns the record of a znode that cannot have children, with a watch that fires
// when the znode is deleted. It watches the children, so it does not fire when the data change.
func (s *Session) DeletionW(ctx context.Context, path string) (Stat, *Watch, error) {
	l, w, err := s.childrenW(ctx, "read", path)
	return l.Stat, w, err
}

func (s *Session) childrenW(ctx context.Context, what, path string) (conn.Listing, *Watch, error) {
	return readWatched(ctx, s, what, path, watchKey{path: s.full(path), children: true}, conn.Children, conn.Reply.Listing, nil)
}

// readWatched reads with a watch: the one that is already set, or a new one. It joins the watch
// before the read: the event of a change after the read may arrive before the reply is handled.
// watched, if not nil, runs after a read without an error, even if the caller has returned.
func readWatched[T any](ctx context.Context, s *Session, what, path string, key watchKey,
	request func(path string, arm bool) conn.Request, read func(conn.Reply) (T, error), watched func(*Watch, T)) (T, *Watch, error) {
	type result struct {
		value T
		watch *Watch
	}
	got, err := readWith(ctx, s, what, path, func() (result, error) {
		w, arm, err := s.watches.join(ctx, key)
		if err != nil {
			return result{}, err
		}
		value, err := conn.Ask(s.wire.Current(), request(key.path, arm), read)
		if arm {
			s.watches.settle(key, w, err == nil)
		}
		if watched != nil && err == nil {
			watched(w, value)
		}
		return result{value, w}, err
	})
	return got.value, got.watch, err
}

// Predecessor reads and watches the znode at path, and watches for the deletion of the caller's
// znode, in one exchange. The watch on the caller's znode is set first. A server sends events
// in the order of the changes. So the session is notified of a deletion of the caller's znode
// before it is notified of any later change of the predecessor.
//
// The caller's znode is watched with setWatches. That costs no read: the server compares its
// record with the zxid in the request.
//
// ErrNoNode means that the predecessor does not exist. The caller's znode is then watched.
func (s *Session) Predecessor(ctx context.Context, bare BareZnode, path string) (node Node, predecessor, own *Watch, err error) {
	ownKey := watchKey{path: s.full(bare.Path), children: true}
	key := watchKey{path: s.full(path)}
	node, err = readAgain(ctx, s, "read", path, func(life context.Context) (Node, error) {
		var requests []conn.Request
		c := s.wire.Current() // the connection of the watches joined below; on a later one, own might not be set
		var armOwn, arm bool
		var err error
		if own, armOwn, err = s.watches.join(life, ownKey); err != nil {
			return Node{}, err
		}
		if armOwn {
			requests = append(requests, s.deletionWatch(bare))
		}
		if predecessor, arm, err = s.watches.join(life, key); err != nil {
			if armOwn {
				s.watches.settle(ownKey, own, false)
			}
			return Node{}, err
		}
		replies, err := s.exchangeOn(life, c, append(requests, conn.Get(key.path, arm).Identified().Unbounded())...)
		var node Node
		if armOwn {
			if err == nil {
				err = replies[0].Err()
			}
			s.watches.settle(ownKey, own, err == nil)
		}
		if err == nil {
			s.bare.watched(bare, ownKey, own)
		}
		if err == nil {
			node, err = replies[len(replies)-1].Node()
		}
		if arm {
			s.watches.settle(key, predecessor, err == nil)
		}
		return node, err
	})
	return node, predecessor, own, err
}

// BareW watches for the deletion of a bare znode. If the znode is already deleted, the watch
// fires at once, even if another znode has its name.
func (s *Session) BareW(ctx context.Context, bare BareZnode) (*Watch, error) {
	key := watchKey{path: s.full(bare.Path), children: true}
	return readAgain(ctx, s, "watch", bare.Path, func(life context.Context) (*Watch, error) {
		w, arm, err := s.watches.join(life, key)
		if err != nil {
			return nil, err
		}
		if !arm {
			s.bare.watched(bare, key, w)
			return w, nil
		}
		replies, err := s.exchangeOn(life, s.wire.Current(), s.deletionWatch(bare))
		if err == nil {
			err = replies[0].Err()
		}
		s.watches.settle(key, w, err == nil)
		if err == nil {
			s.bare.watched(bare, key, w)
		}
		return w, err
	})
}

// deletionWatch builds the request that watches for the deletion of a bare znode. It watches
// the children: an ephemeral znode has none, so no other event fires the watch. If the znode is
// deleted, or another one has its name, the event comes at once. The connection must have the
// identity, because a server sends no events to a session that may not read the znode.
func (s *Session) deletionWatch(bare BareZnode) conn.Request {
	return conn.WatchChildren(s.full(bare.Path), bare.Stat.Czxid).Identified()
}
