package recipes

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Configuration is a tree of keys with values that many read and few change. It is a
// name and holds no state. Any number of goroutines may use it.
//
// Source: ZooKeeper Recipes, "Out of the Box Applications": configuration is
// "provided directly by the ZooKeeper API". A key is a path below the
// configuration's, without the leading slash ("db/host"). "" is the configuration's
// own node. Every node is a key, also one that was made as the parent of another: it
// has an empty value and is Unset. Nodes with an element that starts with _c_ are not keys. They
// are the receipts of Set and Delete: a session keeps one, ephemeral, below the
// configuration's node.
//
// The API compares versions, which overflow (CURATOR-688) and begin again when a
// node is deleted and created. Here a value's Revision, its mzxid, is compared. It
// grows with every change of anything in ZooKeeper. See Set for what that does not
// cover.
type Configuration interface {
	// Path is the path the configuration was made with.
	Path() string

	// Get returns a key's value, or an error that matches ErrNoNode. It costs one
	// read. The answer is what one server knows; another may know more.
	Get(ctx context.Context, key string) (Entry, error)

	// Set gives a key a value, if its present revision is the one expected, and
	// returns the new revision. AnyRevision matches anything, also a key that does
	// not exist. NoRevision is for a key that must not exist. Set makes the parents
	// that are missing, with empty values.
	//
	// If the revision is another, nothing has changed, and the error matches
	// ErrBadVersion. For NoRevision it matches ErrNodeExists. If a revision is
	// expected and the key does not exist, it matches ErrNoNode. A value that does
	// not fit into one packet (SessionConfig.MaxPacket) is refused as ErrTooLarge,
	// and nothing is sent.
	//
	// Set happens once, also when replies are lost. The error matches
	// ErrUnknownOutcome if ctx ends, or the session is lost, after the change was
	// sent. It also does if the change has happened but its revision cannot be read
	// any more, and if the reply to the creation of the configuration's own node is
	// lost.
	//
	// Set reads the key's revision, and its write names the version that belongs to it:
	// ZooKeeper has nothing else to compare. If another client deletes the key between
	// the two, and creates it again with as many changes as it had, Set overwrites the
	// new key. This window is one round trip: the write is sent on the connection of the
	// read, at once. It is two round trips for the first change of a session, which
	// makes the receipt, and longer if the process or the servers stand still in
	// between. An outage does not widen it: after each reconnect Set reads again before
	// it writes, and returns ErrBadVersion if the key was replaced.
	Set(ctx context.Context, key string, value []byte, expected Revision) (Revision, error)

	// Delete removes a key, on the terms of Set. If the key has keys below it, the
	// error matches ErrNotEmpty. The configuration's own node cannot be deleted:
	// ErrInvalid.
	Delete(ctx context.Context, key string, expected Revision) error

	// Key returns the operation op, whose Path is a key, for a guarded write: it does
	// the same to the key's znode. So only the holder of a lock changes the key:
	//
	//	op, err := configuration.Key(recipes.Set("db/host", value, recipes.AnyVersion))
	//	...
	//	err = hold.Write(ctx, op)
	//
	// Key sends nothing, so the error can only be ErrInvalid. What Write promises
	// holds, and not what Set does: the parents must exist, versions are compared
	// instead of revisions, and a lost reply is ErrUnknownOutcome.
	Key(op Op) (Op, error)

	// Watch returns a channel that first gives a key's value and then every change.
	// When the key does not exist, it gives an Entry that is None. A slow reader may
	// miss values in between but never the latest.
	//
	// The channel is closed when ctx ends, or when the session is lost (Session.Err
	// tells). It is also closed when the value cannot be read any more, because of
	// its ACL or its size (SessionConfig.MaxPacket); that is logged. Watch returns an
	// error only if the first look fails.
	Watch(ctx context.Context, key string) (<-chan Entry, error)

	// Snapshot returns all keys and their values, sorted by key. If the configuration
	// does not exist, it returns none. It costs two reads for each key. It does not
	// show one moment: each key is shown as it was when it was read.
	Snapshot(ctx context.Context) ([]Entry, error)

	// WatchTree returns a channel that first gives what Snapshot does, and then all of
	// it again whenever a key has changed, come or gone, on the terms of Watch. Only
	// what has changed is read again; after a lost connection everything is. It keeps
	// two watches for each key.
	WatchTree(ctx context.Context) (<-chan []Entry, error)
}

// Revision is the ZooKeeper transaction that gave a key its value (mzxid).
type Revision int64

const (
	// AnyRevision matches whatever there is, and a key that does not exist.
	AnyRevision Revision = -1
	// NoRevision is that of a key that does not exist.
	NoRevision Revision = 0
)

// Entry is a key and its value. The zero Entry is None.
type Entry struct {
	Key      string
	Value    []byte
	Revision Revision
	// Modified is when it got this value, by the server's clock.
	Modified time.Time
	// Unset reports that no client has set the key: its node is empty and was never
	// changed, as one that Set made as the parent of another key. A key that Set gave an
	// empty value is not Unset. The configuration's own node is, and so is one that
	// another client created empty.
	Unset bool
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

// Validate reports, as an ErrInvalid, that no revision can be this one.
func (r Revision) Validate() error {
	if r < AnyRevision {
		return fmt.Errorf("%w: revision %d; a revision is AnyRevision (-1), NoRevision (0) or positive", ErrInvalid, r)
	}
	return nil
}
