// Package znode has what several families of recipes need to work with znodes:
//
//   - [Ephemeral] is a znode that this session has made and relies on, such as a
//     member of a group.
//   - [Read] and [Observe] read a set of znodes, once or as they change.
//   - [TryAgain] and [GivenUp] decide what to do after a change has failed.
//   - [ReadSynced] reads again after a sync where a server may lag behind.
//
// How to wait for an event is session.Session.Wait; how contenders wait for each
// other is package line.
package znode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// ErrReadAgain says that something has changed since it was read, so that the
// caller has to read it again. No recipe returns it to the application.
var ErrReadAgain = errors.New("read again")

// MemberMarker ends the fixed part of the name of a member that the application
// has not named.
const MemberMarker = "member-"

// OwnerOf returns the session that a znode belongs to, or 0. ZooKeeper marks
// containers and znodes with a time to live in the same field.
func OwnerOf(stat session.Stat) int64 {
	const container, ttl = -1 << 63, 0xff
	if owner := stat.EphemeralOwner; owner != container && byte(owner>>56) != ttl {
		return owner
	}
	return 0
}

// Taken returns a *recipes.TakenError that says who has the name, or err if that
// cannot be read.
func Taken(ctx context.Context, s *session.Session, path string, err error) error {
	stat, readErr := s.Stat(ctx, path)
	if readErr != nil {
		return err // it is gone again, or may not be read
	}
	return TakenBy(path, stat)
}

// TakenBy says who has the name of a znode with that record.
func TakenBy(path string, stat session.Stat) error {
	return &recipes.TakenError{Znode: path, SessionID: OwnerOf(stat), Since: time.UnixMilli(stat.Ctime)}
}

// Excerpt shortens data that an error quotes.
func Excerpt(data string) string {
	const enough = 40
	if len(data) > enough {
		return data[:enough] + "..."
	}
	return data
}

// UnknownOutcome adds recipes.ErrUnknownOutcome to an error. It returns nil for nil, and
// an error that says so already as it is.
func UnknownOutcome(err error) error {
	if err == nil || errors.Is(err, recipes.ErrUnknownOutcome) {
		return err
	}
	return fmt.Errorf("%w: %w", recipes.ErrUnknownOutcome, err)
}

// RefusedOp returns which operation of a transaction the server refused, or -1.
func RefusedOp(err error) int {
	var refused *session.TxnError
	if errors.As(err, &refused) {
		return refused.Index
	}
	return -1
}

// GoneOrChanged reports whether the server refused a transaction because another client
// was faster.
func GoneOrChanged(err error) bool {
	return RefusedOp(err) >= 0 && (errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrBadVersion))
}
