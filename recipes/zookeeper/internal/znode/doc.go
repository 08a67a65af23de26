// Package znode has what several recipes need to read and write znodes:
//
//   - [Recipe] holds a recipe's session and path, and adds its name and path to errors.
//   - [Ephemeral] is a znode that this session has created and relies on, such as a member of
//     a group.
//   - [Read] and [Observe] read a set of znodes, once or as they change.
//   - [Await] reads until a condition holds, and waits for events between the reads.
//   - [Retry] repeats a change that reads and then writes. [TryAgain] and [GivenUp] decide what to
//     do after such a change has failed.
//   - [ReadSynced] reads again after a sync if the server may lag behind.
//
// Contenders of a wait queue wait in package line.
package znode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// ErrReadAgain means that something has changed since it was read, so the caller must read it
// again. No recipe returns it to the application.
var ErrReadAgain = errors.New("read again")

// MemberMarker precedes the number in the name of a member that the application has not named.
const MemberMarker = "member-"

// OwnerOf returns the session that owns a znode, or 0. ZooKeeper marks containers and znodes
// with a time to live in the same field.
func OwnerOf(stat session.Stat) int64 {
	const container, ttl = -1 << 63, 0xff
	if owner := stat.EphemeralOwner; owner != container && byte(owner>>56) != ttl {
		return owner
	}
	return 0
}

// Taken returns a *recipes.TakenError with the owner of the znode at path, or err if the znode
// cannot be read.
func Taken(ctx context.Context, s *session.Session, path string, err error) error {
	stat, readErr := s.Stat(ctx, path)
	if readErr != nil { // the znode is deleted again, or may not be read
		return err
	}
	return TakenBy(path, stat)
}

// TakenBy returns the error for a name that a znode with that record has.
func TakenBy(path string, stat session.Stat) error {
	return &recipes.TakenError{Znode: path, SessionID: OwnerOf(stat), Since: time.UnixMilli(stat.Ctime)}
}

// Excerpt shortens data for an error text.
func Excerpt(data string) string {
	const enough = 40
	if len(data) > enough {
		return data[:enough] + "..."
	}
	return data
}

// UnknownOutcome adds recipes.ErrUnknownOutcome to an error, unless it is nil or already
// matches.
func UnknownOutcome(err error) error {
	if err == nil || errors.Is(err, recipes.ErrUnknownOutcome) {
		return err
	}
	return fmt.Errorf("%w: %w", recipes.ErrUnknownOutcome, err)
}

// RefusedOp returns the index of the operation that the server refused in a transaction, or -1.
func RefusedOp(err error) int {
	if refused, ok := errors.AsType[*session.TxnError](err); ok {
		return refused.Index
	}
	return -1
}

// GoneOrChanged reports whether the server refused a transaction because another client had
// deleted or changed a znode.
func GoneOrChanged(err error) bool {
	return RefusedOp(err) >= 0 && (errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrBadVersion))
}
