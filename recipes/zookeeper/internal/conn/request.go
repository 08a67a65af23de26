package conn

import "github.com/zkrecipes/zkrecipes/internal/jute"

// Stat is ZooKeeper's record of a znode.
type Stat = jute.Stat

// Node is a znode's data and record.
type Node struct {
	Data []byte
	Stat Stat
	// Unreadable: the ACL does not allow this session to read Data. An ACL never hides Stat.
	Unreadable bool
}

// Flags of a creation.
const (
	Persistent int32 = 0
	Ephemeral  int32 = 1
	Sequence   int32 = 2
)

// Request is one of the session's own requests.
type Request struct {
	op   int32
	body []byte
	most int // bytes that the reply may have; 0 is maxReply
}

// readOf builds a read of a path, with or without a watch.
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

// pathOnly builds a request that consists of a path.
func pathOnly(op int32, path string) Request {
	var e jute.Encoder
	e.String(path)
	return Request{op: op, body: e.Bytes}
}

// Sync brings the server that the session is connected to up to date.
func Sync(path string) Request { return pathOnly(opSync, path) }

func create(op int32, path string, data []byte, flags int32, acl []jute.ACL) Request {
	var e jute.Encoder
	encodeCreate(&e, path, data, flags, acl)
	return Request{op: op, body: e.Bytes}
}

// Create2 creates a znode. The reply contains its record. A server before 3.5 closes the
// connection.
func Create2(path string, data []byte, flags int32, acl []jute.ACL) Request {
	return create(opCreate2, path, data, flags, acl)
}

// WatchChildren sets a watch on a path's children without reading them. If the children have
// changed since transaction zxid, or the znode is deleted, the event comes at once.
func WatchChildren(path string, zxid int64) Request {
	var e jute.Encoder
	e.Int64(zxid)
	e.Strings()
	e.Strings()
	e.Strings(path)
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

// encodeVersion encodes the path and version of a deletion or a check.
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
