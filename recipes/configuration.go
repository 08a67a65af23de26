package recipes

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Configuration is a tree of keys with values that many clients read and few change. It is
// only a path, without state of its own, and is safe for concurrent use.
//
// Source: ZooKeeper Recipes, "Out of the Box Applications": configuration is "provided
// directly by the ZooKeeper API". A key is a path below the configuration's, without the
// leading slash ("db/host"). "" is the configuration's own node. Every node is a key. A node
// that exists only as the parent of another key has an empty value and is Unset. Nodes with an
// element that starts with _c_ are not keys. Some are the receipts of Set and Delete: a
// session keeps an ephemeral one below the configuration's node, and another beside that node if
// its Set created the node. The others count deletions: once a change has compared a revision or
// deleted a key, the parent of the key has a persistent one.
//
// ZooKeeper compares versions, which overflow (CURATOR-688) and restart when a node is deleted
// and created again. Set and Delete compare the Revision of a value, its mzxid, which grows
// with every transaction of the ensemble.
type Configuration interface {
	// Path is the path of the configuration.
	Path() string

	// Get returns a key's value, or an error that matches ErrNoNode. It costs one read, and
	// the session's server may lag behind others.
	Get(ctx context.Context, key string) (Entry, error)

	// Set sets the value of a key if its revision is the expected one, and returns the new
	// revision. AnyRevision matches every revision, and a key that does not exist.
	// NoRevision matches only a key that does not exist. Set creates missing parents with
	// empty values.
	//
	// If the revision differs, nothing is changed, and the error matches ErrBadVersion, or
	// for NoRevision ErrNodeExists. If a revision is expected and the key does not exist,
	// it matches ErrNoNode. If the value does not fit into one packet
	// (SessionConfig.MaxPacket), nothing is sent and the error matches ErrTooLarge.
	//
	// Set changes the key once even if replies are lost. The error matches
	// ErrUnknownOutcome if ctx ends, or the session is lost, after the change was sent. The
	// same applies if the change was committed but its revision can no longer be read.
	//
	// The comparison is exact: a key that was deleted and created again does not match, however
	// often it was changed. ZooKeeper compares only versions, so each deletion by this library
	// also changes a count in a node beside the key, and Set checks the count that it knew
	// before it read the key. Sessions need the permission to read that node, and to delete a
	// key also the permission to write it. The node gets the SessionConfig.ACL of the session
	// that creates it. Without the permission nothing changes, and the error matches
	// ErrAccessDenied. Only a key that another program deletes can be mistaken: if it was
	// created again with as many changes while one request is in flight, Set overwrites it.
	//
	// A Set costs one write and one read. The first comparison of a session in a directory costs
	// a few more, and a deletion in the same directory makes Set read again.
	Set(ctx context.Context, key string, value []byte, expected Revision) (Revision, error)

	// Delete deletes a key, under the conditions, with the errors and for the costs of Set. If the
	// key has keys below it, the error matches ErrNotEmpty. The configuration's own node cannot be
	// deleted: ErrInvalid.
	Delete(ctx context.Context, key string, expected Revision) error

	// Key converts op, whose Path is a key, to the same operation on the key's znode, for a
	// guarded write. So only the holder of a lock changes the key:
	//
	//	op, err := configuration.Key(recipes.Set("db/host", value, recipes.AnyVersion))
	//	...
	//	err = hold.Write(ctx, op)
	//
	// Key sends nothing, so the error can only be ErrInvalid. The guarantees are those of
	// Write, not of Set: the parents must exist, versions are compared instead of revisions
	// (Entry.Version), and a lost reply is ErrUnknownOutcome. A Delete becomes a DeleteKey.
	Key(op Op) (Op, error)

	// Watch returns a channel that first receives a key's value and then every change. If
	// the key does not exist, it receives an Entry that is None. A slow reader may miss
	// values in between but never the latest.
	//
	// The channel is closed when ctx ends, or when the session is lost (see Session.Err). It
	// is also closed when the value can no longer be read because of its ACL or its size
	// (SessionConfig.MaxPacket); that is logged. Watch returns an error only if the first
	// read fails.
	Watch(ctx context.Context, key string) (<-chan Entry, error)

	// Snapshot returns all keys and their values, sorted by key. It returns none if the
	// configuration does not exist. It costs two reads for each key. The values are not from
	// one moment: each is as it was when it was read.
	Snapshot(ctx context.Context) ([]Entry, error)

	// WatchTree returns a channel that first receives all keys and values, as Snapshot
	// returns them, and then all of them whenever a key was created, changed or deleted. The
	// channel closes when Watch's would. Only changes are read again; after a lost
	// connection everything is. It keeps two watches for each key.
	WatchTree(ctx context.Context) (<-chan []Entry, error)
}

// Revision is the ZooKeeper transaction that gave a key its value (mzxid).
type Revision int64

const (
	// AnyRevision matches every revision, and a key that does not exist.
	AnyRevision Revision = -1
	// NoRevision is the revision of a key that does not exist.
	NoRevision Revision = 0
)

// Entry is a key and its value. The zero Entry is None.
type Entry struct {
	Key      string
	Value    []byte
	Revision Revision
	// Modified is when the value was set, by the server's clock.
	Modified time.Time
	// Unset reports that no client has set the key: its node is empty and was never
	// changed, like a parent that Set created. A key that was Set to an empty value is not
	// Unset. A node that another client created empty is.
	Unset bool
	// Version is the version of the key's znode, for a guarded write (see Key).
	Version int32
}

// None reports that the key does not exist.
func (e Entry) None() bool { return e.Revision == NoRevision }

// ValidateKey reports, as an ErrInvalid, why key is not a key of a configuration.
func ValidateKey(key string) error {
	if key == "" {
		return nil
	}
	if strings.HasPrefix(key, "/") {
		return fmt.Errorf("%w: key %q starts with a slash; keys are below the configuration's path", ErrInvalid, key)
	}
	if strings.HasPrefix(key, "_c_") || strings.Contains(key, "/_c_") {
		return fmt.Errorf("%w: key %q has an element that starts with _c_, as names do that recipes make", ErrInvalid, key)
	}
	return validateElements("key", key, key)
}

// Validate returns an ErrInvalid if r cannot be a revision.
func (r Revision) Validate() error {
	if r < AnyRevision {
		return fmt.Errorf("%w: revision %d; a revision is AnyRevision (-1), NoRevision (0) or positive", ErrInvalid, r)
	}
	return nil
}
