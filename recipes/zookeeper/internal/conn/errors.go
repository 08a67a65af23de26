package conn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Code is the error code of a server's answer. It matches the sentinel of package recipes with
// the same meaning.
type Code int32

// BadArguments and InvalidACL match the same sentinel, so callers that must distinguish them
// compare the code. Unimplemented matches none: the caller uses another request.
const (
	Unimplemented Code = -6
	BadArguments  Code = -8
	InvalidACL    Code = -114

	oversized    Code = -117 // the reply is larger than allowed; servers never send this code
	moved        Code = -118
	localSession Code = -120 // the server does not upgrade it
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
	switch c {
	case Unimplemented:
		what = "this version of ZooKeeper does not know the request"
	case moved:
		what = "the session has moved to another server"
	case localSession:
		what = "its sessions are local, and it creates no ephemeral znodes in them: set localSessionsUpgradingEnabled=true in zoo.cfg"
	}
	return fmt.Sprintf("%v: the server answered: %s", recipes.ErrInternal, what)
}

// Unwrap returns the sentinel, or ErrInternal for a code that has none.
func (c Code) Unwrap() error {
	if sentinel := sentinels[c]; sentinel != nil {
		return sentinel
	}
	return recipes.ErrInternal
}

// lostError marks a failure of the connection, as opposed to a server's answer.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

var errClosed = &lostError{errors.New("the connection has ended")}

// ErrNotSent means that no part of a request was sent, because the session has no connection or
// the connection has ended.
var ErrNotSent error = &lostError{errors.New("not sent: there is no connection")}

// errSpared is returned to go-zookeeper when it tries to close a session that must continue in
// another process.
var errSpared = errors.New("the session is not closed")

// Lost reports whether err means that the connection failed. The outcome of the request is then
// unknown, except after ErrNotSent. Any other error is the server's answer, even if its code has
// no sentinel.
func Lost(err error) bool {
	var lost *lostError
	return errors.As(err, &lost)
}

// A server that refuses a connection closes it without a reason. The functions below add the
// probable reasons to the error.

// hungUp reports whether err means that the server has closed the connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// refused adds to err, which ended ZooKeeper's handshake, the probable reasons. c.head is the
// start of the first frame: it is zero if the server has sent nothing.
func (c *Conn) refused(err error) error {
	_, secured := c.Conn.(*tls.Conn)
	silent := hungUp(err) && c.head == [len(c.head)]byte{}
	switch {
	case silent && secured:
		err = fmt.Errorf("the server closed the connection (has it no quorum, or is it read-only? does it refuse the client's certificate?): %w", err)
	case silent:
		err = fmt.Errorf("the server closed the connection (has it no quorum, or is it read-only? does it speak TLS there? has this client maxClientCnxns connections?): %w", err)
	}
	return fmt.Errorf("handshake with %s: %w", c.RemoteAddr(), err)
}

// refusedTLS adds to err, which ended a TLS handshake, the probable reason.
func refusedTLS(server string, err error) error {
	if _, noTLS := errors.AsType[tls.RecordHeaderError](err); noTLS || hungUp(err) {
		err = fmt.Errorf("probably the server speaks no TLS there: %w", err)
	}
	if _, name := errors.AsType[x509.HostnameError](err); name {
		err = fmt.Errorf("the server's certificate has another name; give server_name (TLS.ServerName), or any_name (TLS.AnyName) if its authority signs for this ensemble only: %w", err)
	}
	return fmt.Errorf("TLS handshake with %s: %w", server, err)
}
