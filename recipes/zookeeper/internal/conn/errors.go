package conn

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Code is an error with which a server answers a request. It matches the sentinel of
// recipes that says the same.
type Code int32

// BadArguments and InvalidACL match one sentinel, and NoAuth is what a server answers to
// those who have not shown who they are.
const (
	BadArguments Code = -8
	InvalidACL   Code = -114

	unimplemented Code = -6
	oversized     Code = -117 // of a reply larger than allowed; servers never send it
	moved         Code = -118
)

var sentinels = map[Code]error{
	BadArguments: recipes.ErrInvalid,
	-101:         recipes.ErrNoNode,
	-102:         recipes.ErrAccessDenied,
	-103:         recipes.ErrBadVersion,
	-108:         recipes.ErrInvalid, // NoChildrenForEphemerals
	-110:         recipes.ErrNodeExists,
	-111:         recipes.ErrNotEmpty,
	-112:         recipes.ErrExpired,
	InvalidACL:   recipes.ErrInvalid,
	-115:         recipes.ErrAuthFailed,
	oversized:    recipes.ErrTooLarge,
	-124:         recipes.ErrSASLRequired,
	-125:         recipes.ErrQuota,
	-127:         recipes.ErrThrottled,
}

func (c Code) Error() string {
	if sentinel := sentinels[c]; sentinel != nil {
		return sentinel.Error()
	}
	what := fmt.Sprint("error ", int32(c))
	if c == moved {
		what = "the session has moved to another server"
	}
	return fmt.Sprintf("%v: the server answered: %s", recipes.ErrInternal, what)
}

// Unwrap returns the sentinel, which is ErrInternal for an error without a name.
func (c Code) Unwrap() error {
	if sentinel := sentinels[c]; sentinel != nil {
		return sentinel
	}
	return recipes.ErrInternal
}

// lostError marks an error of the network, as opposed to an answer of the server.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

var errClosed = &lostError{errors.New("the connection has ended")}

// ErrNotSent says that nothing of a request was sent, because there is no connection or
// it has ended.
var ErrNotSent error = &lostError{errors.New("not sent: there is no connection")}

// errSpared: go-zookeeper would close a session that goes on elsewhere.
var errSpared = errors.New("the session is not closed")

// Lost reports whether err says that the connection failed, so that the outcome of the
// request is unknown. Any other error is the server's answer, even one whose code has no
// name.
func Lost(err error) bool {
	var lost *lostError
	return errors.As(err, &lost) || errors.Is(err, zk.ErrConnectionClosed) ||
		errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrClosing) // of Wire.Authenticate
}
