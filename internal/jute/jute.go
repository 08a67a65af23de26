// Package jute reads and writes jute, ZooKeeper's encoding of records on the wire.
// The session uses it for the requests that it sends without go-zookeeper. The in-process
// server uses it for everything.
//
// The conformance client in the tests of internal/zkserver has its own codec. If both sides
// used this one, both would make the same mistake, and no test would notice it.
package jute

// ACL is an entry of a znode's access control list.
type ACL struct {
	Perms  int32 // sum of 1 read, 2 write, 4 create, 8 delete, 16 admin
	Scheme string
	ID     string
}

// Stat is ZooKeeper's record of a znode. Its fields are in the order of the wire.
type Stat struct {
	Czxid, Mzxid   int64 // the transactions that created it and last set its data
	Ctime, Mtime   int64 // milliseconds since 1970
	Version        int32 // data changes
	Cversion       int32 // child changes: creations and deletions
	Aversion       int32 // ACL changes
	EphemeralOwner int64 // the session; 0 without one, for containers and TTL nodes too
	DataLength     int32
	NumChildren    int32
	Pzxid          int64 // the transaction that last created or deleted a child
}
