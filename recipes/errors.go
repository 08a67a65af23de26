package recipes

import (
	"errors"
	"fmt"
)

// Sentinels, one for each decision that a caller can make.
var (
	// ErrInvalid: an argument is wrong (a path, a strategy, an empty server
	// list, an ACL that the server refuses). Nothing was changed. Correct the call.
	ErrInvalid = errors.New("invalid argument")

	// ErrUnavailable: no server could be reached in the time that the context
	// allowed. The request is known not to have been carried out, or to be
	// harmless. Try again later.
	ErrUnavailable = errors.New("zookeeper is unavailable")

	// ErrUnknownOutcome: the connection was lost after a write was sent and before
	// its answer came. It may or may not have happened. Where a server had not yet
	// processed it, it may still happen, until this session has reconnected or is
	// over. After a reconnect, read what it would have changed before you send it
	// again. Where the loss of the session, or the end of the caller's context,
	// keeps the call from finding out, the error matches that too.
	ErrUnknownOutcome = errors.New("outcome unknown")

	// ErrSessionLost: the session has ended, and with it every hold, leadership and
	// place in line. Open another session. The reasons below (ErrExpired,
	// ErrDeadline, ErrClosed, ErrPluginLost, ErrAuthFailed) all match it.
	ErrSessionLost = errors.New("session lost")

	// ErrNotHeld: the hold or leadership no longer stands, so the operation that
	// depends on it was not carried out. Acquire again. If the session was lost, the
	// error matches ErrSessionLost too.
	ErrNotHeld = errors.New("not held")

	// ErrContended: a Try method found somebody ahead in line, and has left the line.
	ErrContended = errors.New("held by another contender")

	// ErrNotRevocable: the contender did not allow what was asked of it when it
	// joined (SharedLockConfig.Revocable, Grace). It goes on undisturbed.
	ErrNotRevocable = errors.New("contender is not revocable")

	// ErrMismatch: the contenders of a path disagree about something that all of
	// them must agree on, such as the number of permits. Nothing is held. Correct
	// the configuration that is wrong.
	ErrMismatch = errors.New("contenders disagree")

	// ErrForeign: a contender with which this one shares no wait queue has a znode at the
	// path: it is of another recipe, library or dialect. The two would not exclude each
	// other. A contender that joins has left the wait queue and holds nothing. A hold ends
	// with ErrForeign and ErrNotHeld when such a contender has joined after the grant; it
	// still has to be released. The error is a *ForeignError that names the other one. Use
	// the recipe and Dialect that all contenders use, or another path. See docs/interop.md
	// for what this can and cannot see.
	ErrForeign = errors.New("foreign contender")

	// ErrNoLeader: nobody campaigns, so nobody leads.
	ErrNoLeader = errors.New("no leader")

	// ErrEmpty: the queue is empty, or all its elements are claimed.
	ErrEmpty = errors.New("queue is empty")

	// ErrNoTransaction: nothing has begun at the path of the transaction, or all
	// sites were done and it was deleted.
	ErrNoTransaction = errors.New("no transaction")

	// ErrUnknownSite: the site is not of the transaction's group.
	ErrUnknownSite = errors.New("site is not of the transaction")

	// ErrVoted: the site has already voted otherwise. The first vote counts.
	ErrVoted = errors.New("site has voted otherwise")

	// ErrUndecided: the transaction has no decision yet, or not all sites have
	// acted on it.
	ErrUndecided = errors.New("transaction is not finished")

	// ErrNoNode: a guarded write sets or deletes a node that does not exist,
	// or creates one whose parent does not.
	ErrNoNode = errors.New("node does not exist")

	// ErrNodeExists: a guarded write creates a node that exists.
	ErrNodeExists = errors.New("node exists")

	// ErrBadVersion: a guarded write names a version that is not the node's.
	ErrBadVersion = errors.New("version does not match")

	// ErrNotEmpty: a guarded write deletes a node that has children.
	ErrNotEmpty = errors.New("node has children")

	// ErrAccessDenied: the server's ACLs refuse the operation to this session.
	// Check SessionConfig.Digest and the ACLs of the path.
	ErrAccessDenied = errors.New("access denied")

	// ErrQuota: the change would exceed a quota that an operator has set on the path
	// or above it. Nothing was changed. Delete what is not needed, or raise the quota.
	ErrQuota = errors.New("quota exceeded")

	// ErrSASLRequired: the servers let only sessions in that authenticate by SASL,
	// which this library does not. Nothing was changed.
	ErrSASLRequired = errors.New("the servers require SASL authentication")

	// ErrThrottled: the server has refused the request because it has waited there
	// for too long. It was not carried out. Try again later, or ask less.
	ErrThrottled = errors.New("throttled by the server")

	// ErrTooLarge: the data are larger than SessionConfig.MaxPacket, and nothing was
	// sent. Or a listing is, and cannot be received: the line is longer than MaxPacket
	// has room for.
	ErrTooLarge = errors.New("too large for one packet")

	// ErrLimit: the plugin allows no more of something (sessions, holds). Give some
	// back first.
	ErrLimit = errors.New("limit reached")

	// ErrUnsupported: the plugin is older than this host and does not know what was
	// asked of it. Nothing was changed. Install a newer plugin; its capabilities
	// tell what it knows. Without a plugin this error is never returned.
	ErrUnsupported = errors.New("not supported by this plugin")

	// ErrOverflow: the sum does not fit into 64 bits. Nothing was changed.
	ErrOverflow = errors.New("overflow")

	// ErrInternal: a defect, in this library or in the plugin. Report it.
	ErrInternal = errors.New("internal error")
)

// Reasons why a session was lost. Each matches [ErrSessionLost].
var (
	// ErrExpired: the server said that the session has expired, or answered
	// with another session.
	ErrExpired = fmt.Errorf("%w: expired", ErrSessionLost)

	// ErrDeadline: by the session's own clock the negotiated timeout, less a
	// twentieth, has passed since its last contact. The server may have expired the
	// session, or soon will. While the session holds something, a contact counts only
	// if the leader is known to have it, so that an outage of half the timeout can be
	// enough.
	ErrDeadline = fmt.Errorf("%w: local deadline passed", ErrSessionLost)

	// ErrClosed: the application closed the session.
	ErrClosed = fmt.Errorf("%w: closed", ErrSessionLost)

	// ErrPluginLost: the plugin process died, or its session stream ended. The
	// plugin closes the ZooKeeper session when its host's stream ends; if the
	// plugin itself died, the server expires the session after its timeout.
	ErrPluginLost = fmt.Errorf("%w: plugin lost", ErrSessionLost)

	// ErrAuthFailed: the server refused the credentials.
	ErrAuthFailed = fmt.Errorf("%w: authentication failed", ErrSessionLost)
)

// Reasons why a hold no longer stands while its session does. Each matches
// [ErrNotHeld].
var (
	// ErrRemoved: another client deleted the contender's znode: an operator broke the
	// lock, or another program did.
	ErrRemoved = fmt.Errorf("%w: znode was deleted by another client", ErrNotHeld)

	// ErrRevoked: the contender was asked to give way, and when its grace was over
	// another client deleted its znode. It matches ErrRemoved too. A holder that
	// never called Revoked may get plain ErrRemoved instead.
	ErrRevoked = fmt.Errorf("%w: revoked", ErrRemoved)

	// ErrReleased: the application released the hold or resigned.
	ErrReleased = fmt.Errorf("%w: released", ErrNotHeld)
)
