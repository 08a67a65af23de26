// Package jute reads and writes jute, ZooKeeper's encoding of records on the wire.
// The session uses it for the requests that it sends without go-zookeeper, and the
// in-process server for everything.
//
// The conformance client in the tests of internal/zkserver has a codec of its own:
// with this one a mistake would be made on both sides, and not be seen.
package jute

// ACL is an entry of a znode's access control list.
type ACL struct {
	Perms  int32 // sum of 1 read, 2 write, 4 create, 8 delete, 16 admin
	Scheme string
	ID     string
}

// Stat is what ZooKeeper tells of a znode. Its fields are in the order of the wire.
type Stat struct {
	Czxid, Mzxid   int64 // transactions that created it and last set its data
	Ctime, Mtime   int64 // milliseconds since 1970
	Version        int32 // data changes
	Cversion       int32 // child changes: creations and deletions
	Aversion       int32 // ACL changes
	EphemeralOwner int64 // session; 0 for nodes without one, containers and TTL nodes too
	DataLength     int32
	NumChildren    int32
	Pzxid          int64 // transaction that last created or deleted a child
}
