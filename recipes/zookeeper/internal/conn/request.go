package conn

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Stat is ZooKeeper's record of a znode.
type Stat = jute.Stat

// Node is a znode's data and record.
type Node struct {
	Data []byte
	Stat Stat
	// Unreadable: the ACL does not allow this session to read Data. Since ZooKeeper 3.9, it may
	// hide Stat too.
	Unreadable bool
}

// Flags of a creation.
const (
	Persistent int32 = 0
	Ephemeral  int32 = 1
	Sequence   int32 = 2
)

// Request is one of the session's own requests. All paths are paths at the server.
type Request struct {
	op         int32
	body       []byte
	unbounded  bool // see Unbounded
	identified bool // see Identified
}

// Unbounded accepts data larger than a packet, up to maxReply.
func (r Request) Unbounded() Request { r.unbounded = true; return r }

// bound is the largest size of a reply, in bytes, the setting that limits it, and what to do.
type bound struct {
	bytes           int
	setting, remedy string
}

// bound returns the bound of the reply to a request. Servers bound data, but not listings.
func (w *Wire) bound(r Request) bound {
	switch {
	case r.op == opGetChildren2 || r.op == opGetEphemerals:
		return bound{w.MaxListing, "SessionConfig.MaxListing (max_listing)", "raise it, or delete children"}
	case r.unbounded:
		return bound{maxReply, "the bound for this request", "another client has written too much"}
	}
	return bound{w.MaxPacket, "SessionConfig.MaxPacket (max_packet)", "raise it to the servers' jute.maxbuffer"}
}

// Identified sends the session's identity first, once on each connection. A server that refuses
// the identity ends the connection. The identity is then not sent again, because every server
// would end the connection. Requests that need it are refused, and the session deletes its
// earlier bare znodes without it.
func (r Request) Identified() Request { r.identified = true; return r }

func readOf(op int32, path string, watch bool) Request {
	var e jute.Encoder
	e.String(path)
	e.Bool(watch)
	return Request{op: op, body: e.Bytes}
}

// Get reads a znode.
func Get(path string, watch bool) Request { return readOf(opGetData, path, watch) }

// Exists reads a znode's record.
func Exists(path string, watch bool) Request { return readOf(opExists, path, watch) }

// Children lists a znode's children and reads its record.
func Children(path string, watch bool) Request { return readOf(opGetChildren2, path, watch) }

func pathOnly(op int32, path string) Request {
	var e jute.Encoder
	e.String(path)
	return Request{op: op, body: e.Bytes}
}

// Ephemerals lists the session's ephemeral znodes whose paths begin with prefix.
func Ephemerals(prefix string) Request { return pathOnly(opGetEphemerals, prefix) }

// Sync brings the server that the session is connected to up to date.
func Sync(path string) Request { return pathOnly(opSync, path) }

// Create creates a znode. The server appends a number to its name if flags contain Sequence.
func Create(path string, data []byte, flags int32, acl []jute.ACL) Request {
	var e jute.Encoder
	encodeCreate(&e, path, data, flags, acl)
	return Request{op: opCreate, body: e.Bytes}
}

// Create2 is Create with a reply that contains the znode's record. A server before 3.5 closes
// the connection.
func Create2(path string, data []byte, flags int32, acl []jute.ACL) Request {
	r := Create(path, data, flags, acl)
	r.op = opCreate2
	return r
}

// Set replaces a znode's data, conditional on the version.
func Set(path string, data []byte, version int32) Request {
	var e jute.Encoder
	encodeSet(&e, path, data, version)
	return Request{op: opSetData, body: e.Bytes}
}

// Delete deletes a znode, conditional on the version.
func Delete(path string, version int32) Request {
	var e jute.Encoder
	encodeVersion(&e, path, version)
	return Request{op: opDelete, body: e.Bytes}
}

// WatchChildren sets a watch on a path's children without reading them. If the children have
// changed since transaction zxid, or the znode is deleted, the event comes at once.
func WatchChildren(path string, zxid int64) Request { return watchChildren(zxid, path) }

// WatchFromNowOn sets a watch on the children of each path without reading them. It returns several
// requests if one would have more than size bytes of paths. If a znode does not exist, the event of
// its deletion comes at once.
func WatchFromNowOn(paths []string, size int) (requests []Request) {
	for len(paths) > 0 {
		n := 0
		for room := size; n < len(paths) && (n == 0 || len(paths[n]) <= room); n++ {
			room -= len(paths[n])
		}
		requests = append(requests, watchChildren(math.MaxInt64, paths[:n]...))
		paths = paths[n:]
	}
	return requests
}

func watchChildren(zxid int64, paths ...string) Request {
	var e jute.Encoder
	e.Int64(zxid)
	e.Strings()
	e.Strings()
	e.Strings(paths...)
	return Request{op: opSetWatches, body: e.Bytes}
}

// RemoveDataWatch removes the watch on a path's data. A server before 3.5 closes the
// connection: see Wire.RemovesWatches.
func RemoveDataWatch(path string) Request {
	const ofData = 2
	var e jute.Encoder
	e.String(path)
	e.Int32(ofData)
	return Request{op: opRemoveWatches, body: e.Bytes}
}

func encodeCreate(e *jute.Encoder, path string, data []byte, flags int32, acl []jute.ACL) {
	e.String(path)
	e.Buffer(notNull(data))
	e.ACLs(acl...)
	e.Int32(flags)
}

func encodeSet(e *jute.Encoder, path string, data []byte, version int32) {
	e.String(path)
	e.Buffer(notNull(data))
	e.Int32(version)
}

func encodeVersion(e *jute.Encoder, path string, version int32) {
	e.String(path)
	e.Int32(version)
}

// notNull replaces nil by empty data. ZooKeeper distinguishes empty from null data. Curator's
// LeaderLatch and LeaderSelector throw an exception if a child of their path has null data.
func notNull(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// Reply is the server's answer to a request.
type Reply struct {
	zxid     int64 // only set by Conn.ask
	code     Code  // 0, or an error
	body     []byte
	tooLarge error // describes the code oversized
}

// Err returns the server's error, which is a Code, an error if the reply was too large, or nil.
func (r Reply) Err() error {
	if r.tooLarge != nil {
		return r.tooLarge
	}
	if r.code != 0 {
		return r.code
	}
	return nil
}

func answer[T any](r Reply, read func(*jute.Decoder) T) (value T, err error) {
	if err := r.Err(); err != nil {
		return value, err
	}
	d := jute.Decoder{Bytes: r.body}
	value = read(&d)
	return value, d.Err
}

// Stat decodes the reply to Exists or Set.
func (r Reply) Stat() (Stat, error) { return answer(r, (*jute.Decoder).Stat) }

// Path decodes the reply to Create.
func (r Reply) Path() (string, error) { return answer(r, (*jute.Decoder).String) }

// Paths decodes the reply to Ephemerals.
func (r Reply) Paths() ([]string, error) { return answer(r, (*jute.Decoder).Strings) }

// Nothing decodes the reply to Sync or Delete.
func (r Reply) Nothing() (struct{}, error) { return struct{}{}, r.Err() }

// Node decodes the reply to Get.
func (r Reply) Node() (Node, error) {
	return answer(r, func(d *jute.Decoder) Node { return Node{Data: d.Buffer(), Stat: d.Stat()} })
}

// Created decodes the reply to Create2: the path at the server, and the record.
func (r Reply) Created() (path string, stat Stat, err error) {
	stat, err = answer(r, func(d *jute.Decoder) Stat { path = d.String(); return d.Stat() })
	return path, stat, err
}

// Listing holds the names of a znode's children, and the record of the znode.
type Listing struct {
	Names []string
	Stat  Stat
}

// Listing decodes the reply to Children.
func (r Reply) Listing() (Listing, error) {
	return answer(r, func(d *jute.Decoder) Listing {
		l := Listing{d.Strings(), d.Stat()}
		if l.Names == nil { // a null vector, which no server sends
			d.Fail()
		}
		return l
	})
}

// maxReply limits the size, in bytes, of data that may be larger than a packet, and of a watch event.
const maxReply = 64 << 20

// Batch is a group of requests that were sent together.
type Batch struct {
	Conn     *Conn
	replies  []Reply
	answered chan struct{} // closed when all replies have arrived
	missing  int           // replies that have not arrived; only the reading goroutine uses it
}

// Answered is closed when all replies have arrived.
func (b *Batch) Answered() <-chan struct{} { return b.answered }

// Settled reports whether waiting cannot change the result any more.
func (b *Batch) Settled() bool { return Happened(b.answered) || Happened(b.Conn.closed) }

// Happened reports whether a channel is closed.
func Happened(event <-chan struct{}) bool {
	select {
	case <-event:
		return true
	default:
		return false
	}
}

// Await waits for all replies. A server answers the requests of a connection in order. The
// error is the connection's (see Lost), ctx's, or the reason why the session was lost. The
// server's errors are in the replies. After ctx is done, Await may be called again with another
// context.
func (b *Batch) Await(ctx context.Context) ([]Reply, error) {
	life := b.Conn.wire.Life
	var err error
	select {
	case <-b.answered:
	case <-b.Conn.closed:
		err = errClosed
	case <-life.Done():
		err = context.Cause(life)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if Happened(b.answered) { // if several things have happened, the replies count
		return b.replies, nil
	}
	return nil, err
}

// Multi is a transaction under construction. Either all of its operations happen, or none. The
// zero value is an empty transaction.
type Multi struct {
	ops jute.Encoder
	n   int
}

func (m *Multi) op(op int32) *jute.Encoder {
	m.n++
	m.ops.MultiHeader(op, -1)
	return &m.ops
}

// Check adds a check that path exists and has the version (-1: any).
func (m *Multi) Check(path string, version int32) { encodeVersion(m.op(opCheck), path, version) }

// Create adds a creation.
func (m *Multi) Create(path string, data []byte, flags int32, acl []jute.ACL) {
	encodeCreate(m.op(opCreate), path, data, flags, acl)
}

// Set adds a change of data, conditional on the version.
func (m *Multi) Set(path string, data []byte, version int32) {
	encodeSet(m.op(opSetData), path, data, version)
}

// Delete adds a deletion, conditional on the version.
func (m *Multi) Delete(path string, version int32) { encodeVersion(m.op(opDelete), path, version) }

// Request returns the complete transaction.
func (m *Multi) Request() Request {
	e := m.ops
	e.MultiEnd()
	return Request{op: opMulti, body: e.Bytes}
}

// Multi sends a transaction and returns the results of its operations. If the server denies
// access, Multi sends the identity and then the transaction again.
func (c *Conn) Multi(m Multi) ([]Result, error) {
	transact := func(r Request) ([]Result, error) {
		results, err := Ask(c, r, Reply.results)
		if err == nil && len(results) != m.n {
			err = jute.ErrMalformed
		}
		return results, err
	}
	results, err := transact(m.Request())
	if err == nil && errors.Is(refusal(results), recipes.ErrAccessDenied) && c.wire.Identified() { // the path of a wait queue may need the identity
		results, err = transact(m.Request().Identified())
	}
	return results, err
}

// CreateParent creates a container, which the server deletes after its last child was deleted.
// A server before 3.5 has no containers and refuses the flag as a bad argument. CreateParent then
// creates a persistent znode. If that succeeds, the flag was the bad argument, and the session
// creates no more containers. Keeper ignores the flag, or ends the connection. Repeating CreateParent
// is harmless.
func (w *Wire) CreateParent(path string, acl []jute.ACL) error {
	if !w.Keeper() && !w.noContainers.Load() {
		if err := w.CreateContainer(path, acl); !errors.Is(err, BadArguments) {
			return err
		}
	}
	_, err := Ask(w.Current(), Create(path, nil, Persistent, acl), Reply.Path)
	if err == nil || errors.Is(err, recipes.ErrNodeExists) {
		w.noContainers.Store(true)
	}
	return err
}

// CreateContainer sends the creation in a transaction. By itself, createContainer is a request
// of ZooKeeper 3.5, and an earlier server closes the connection that sends it.
func (w *Wire) CreateContainer(path string, acl []jute.ACL) error {
	const container = 4
	var m Multi
	m.Create(path, nil, container, acl)
	results, err := w.Current().Multi(m)
	if err != nil {
		return err
	}
	err = refusal(results)
	switch {
	case errors.Is(err, BadArguments): // because of the path, or of the flag
	case err == nil, errors.Is(err, recipes.ErrNodeExists), errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrAccessDenied):
		w.containers.Store(true)
	}
	return err
}

// Result is the result of one operation of a transaction.
type Result struct {
	Refused error  // a Code, or nil; also set for the operations before the refused one
	Created string // the path that a creation returned
	Set     Stat   // the new record after a change of data
}

func (r Reply) results() ([]Result, error) {
	return answer(r, func(d *jute.Decoder) (results []Result) {
		for d.Err == nil {
			op, done, _ := d.MultiHeader()
			if done {
				break
			}
			var r Result
			switch op {
			case opCreate:
				r.Created = d.String()
			case opCreate2: // the answer to create of a container
				r.Created = d.String()
				d.Stat()
			case opSetData:
				r.Set = d.Stat()
			case opDelete, opCheck:
			case opError:
				r.Refused = Reply{code: Code(d.Int32())}.Err()
			default:
				d.Fail()
			}
			results = append(results, r)
		}
		return results
	})
}

// Refusal returns the first error among the results of a transaction.
func (r Reply) Refusal() error {
	results, err := r.results()
	return cmp.Or(err, refusal(results))
}

func refusal(results []Result) error {
	for _, r := range results {
		if r.Refused != nil {
			return r.Refused
		}
	}
	return nil
}
