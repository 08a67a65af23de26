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

	// ErrUnavailable: no server was reached before the context ended. The request was not
	// carried out, or can be repeated without harm. Try again later.
	ErrUnavailable = errors.New("zookeeper is unavailable")

	// ErrUnknownOutcome: the connection was lost after a write was sent and before its reply
	// arrived. The write may have been committed or not. If no server has processed it yet,
	// it can still be committed until this session has reconnected or ended. After a
	// reconnect, read what it would have changed before you repeat it. If the loss of the
	// session, or the end of the caller's context, prevents the call from finding out, the
	// error also matches that reason.
	ErrUnknownOutcome = errors.New("outcome unknown")

	// ErrSessionLost: the session has ended, and with it every grant and every waiting
	// contender. Open another session. The reasons below (ErrExpired,
	// ErrDeadline, ErrClosed, ErrPluginLost, ErrAuthFailed, ErrNotContinued) all match it.
	ErrSessionLost = errors.New("session lost")

	// ErrNotHeld: the grant is no longer held, so the operation that depends on it was not
	// carried out. Acquire again. If the session was lost, the error also matches
	// ErrSessionLost.
	ErrNotHeld = errors.New("not held")

	// ErrContended: a Try method found another contender ahead, and has left the wait queue.
	ErrContended = errors.New("held by another contender")

	// ErrNotRevocable: the contender joined with a configuration that does not allow the
	// request (SharedLockConfig.Revocable, Grace). Nothing was changed.
	ErrNotRevocable = errors.New("contender is not revocable")

	// ErrMismatch: the contenders of a path disagree about something that all of
	// them must agree on, such as the number of permits. Nothing is held. Correct
	// the configuration that is wrong.
	ErrMismatch = errors.New("contenders disagree")

	// ErrForeign: the path has a third-party contender, of another recipe, library or
	// dialect. The two would not exclude each other. A contender that was joining has left
	// the wait queue and holds nothing. If a contender of another library joined after the grant,
	// the hold ends with ErrForeign and ErrNotHeld; the caller must still release it. The
	// error is a *ForeignError that names the contender. Use the recipe and Dialect of the
	// other contenders, or another path. docs/interop.md has the limits of the detection.
	ErrForeign = errors.New("foreign contender")

	// ErrNoLeader: there are no candidates, so there is no leader.
	ErrNoLeader = errors.New("no leader")

	// ErrEmpty: the queue is empty, or all its elements are claimed.
	ErrEmpty = errors.New("queue is empty")

	// ErrNoTransaction: nothing has begun at the path of the transaction, or all
	// sites were done and it was deleted.
	ErrNoTransaction = errors.New("no transaction")

	// ErrUnknownSite: the site is not one of the transaction's sites.
	ErrUnknownSite = errors.New("site is not of the transaction")

	// ErrVoted: the site has already cast another vote. The first vote counts.
	ErrVoted = errors.New("site has voted otherwise")

	// ErrUndecided: the transaction has no decision yet, or not all sites have
	// acted on it.
	ErrUndecided = errors.New("transaction is not finished")

	// ErrNoNode: a znode that the call needs does not exist: a key, a name, the path of
	// Children, the successor of HandOff. A guarded write needs the znode of a Set or Delete,
	// and the parent of a Create. Nothing was changed.
	ErrNoNode = errors.New("node does not exist")

	// ErrNodeExists: the znode that the call would create exists: a key, a transaction, the
	// znode of a Create in a guarded write. For the name of a member or a registration it is
	// a *TakenError. Nothing was changed.
	ErrNodeExists = errors.New("node exists")

	// ErrBadVersion: the znode is not as the caller expects: a key has another revision, a name
	// another token, or in a guarded write the znode another version. Nothing was changed.
	ErrBadVersion = errors.New("version does not match")

	// ErrNotEmpty: a znode that the call would delete has children: a key, in a guarded write
	// the znode of Delete, or a znode of a transaction (see Site.Done). It was not deleted.
	ErrNotEmpty = errors.New("node has children")

	// ErrAccessDenied: the server's ACLs refuse the operation to this session.
	// Check SessionConfig.Digest and the ACLs of the path.
	ErrAccessDenied = errors.New("access denied")

	// ErrQuota: the change would exceed a quota that an operator has set on the path
	// or above it. Nothing was changed. Delete what is not needed, or raise the quota.
	ErrQuota = errors.New("quota exceeded")

	// ErrSASLRequired: the servers require authentication by SASL, or by a scheme of
	// enforce.auth.schemes, and the session has none. Nothing was changed. Set
	// SessionConfig.SASL. If digest is one of the schemes, SessionConfig.Digest is enough; if
	// x509 is, a certificate in SessionConfig.TLS.
	ErrSASLRequired = errors.New("the servers require authentication by SASL, or by a scheme of enforce.auth.schemes")

	// ErrThrottled: the server refused the request, because it had waited there for too
	// long. It was not carried out. Try again later, or send fewer requests.
	ErrThrottled = errors.New("throttled by the server")

	// ErrTooLarge: the data is larger than SessionConfig.MaxPacket, and nothing was sent. Or
	// the data of a znode is larger and cannot be received. Or the path has so many children that
	// their listing is larger than SessionConfig.MaxListing. Or the session holds so much that the
	// paths of its ephemeral znodes would not fit into SessionConfig.MaxPacket. The error names the
	// setting, its value and the size.
	ErrTooLarge = errors.New("too large")

	// ErrLimit: a limit of the plugin is reached (sessions, holds). Close or release some
	// first.
	ErrLimit = errors.New("limit reached")

	// ErrUnsupported: the plugin is older than this host and does not support the request.
	// Nothing was changed. Install a newer plugin; its capabilities list what it supports.
	// Or the servers are ClickHouse Keeper: then a session cannot be resumed, and
	// SessionConfig.ZooKeeperOnly refuses to open one. The text says which.
	ErrUnsupported = errors.New("not supported")

	// ErrOverflow: the sum does not fit into 64 bits. Nothing was changed.
	ErrOverflow = errors.New("overflow")

	// ErrInternal: a defect, in this library or in the plugin. Report it.
	ErrInternal = errors.New("internal error")
)

// Reasons why a session was lost. Each matches [ErrSessionLost].
var (
	// ErrExpired: the server reported that the session has expired.
	ErrExpired = fmt.Errorf("%w: expired", ErrSessionLost)

	// ErrDeadline: by the local clock the negotiated timeout, less a twentieth, has passed
	// since the session's last contact. The server has expired the session or soon will.
	// While the session holds something, a contact counts only if the leader is known to
	// have received it. So an outage of 0.45 of the timeout can be enough, or of 0.2 while
	// the hold is younger than half the timeout.
	ErrDeadline = fmt.Errorf("%w: local deadline passed", ErrSessionLost)

	// ErrClosed: the application closed the session.
	ErrClosed = fmt.Errorf("%w: closed", ErrSessionLost)

	// ErrPluginLost: the plugin process died, or its session stream ended. When the stream
	// ends, the plugin closes the ZooKeeper session. If the plugin died, the server expires
	// the session after its timeout.
	ErrPluginLost = fmt.Errorf("%w: plugin lost", ErrSessionLost)

	// ErrNotContinued: after a lost connection, the server opened another session instead of
	// continuing this one. ClickHouse Keeper always does. The server keeps this session, and the
	// znodes of its locks, until its timeout has passed.
	ErrNotContinued = fmt.Errorf("%w: the server did not continue it", ErrSessionLost)

	// ErrAuthFailed: the server, or Kerberos, refused the credentials. The text says which.
	ErrAuthFailed = fmt.Errorf("%w: authentication failed", ErrSessionLost)
)

// Reasons why a grant was lost while its session continues. Each matches [ErrNotHeld].
var (
	// ErrRemoved: another client, such as an operator, deleted the contender's znode.
	ErrRemoved = fmt.Errorf("%w: znode was deleted by another client", ErrNotHeld)

	// ErrRevoked: the contender was asked to release, and another client deleted its znode
	// when its grace had passed. It also matches ErrRemoved. A holder that never called
	// Revoked may get plain ErrRemoved instead.
	ErrRevoked = fmt.Errorf("%w: revoked", ErrRemoved)

	// ErrReleased: the application released the grant.
	ErrReleased = fmt.Errorf("%w: released", ErrNotHeld)
)
