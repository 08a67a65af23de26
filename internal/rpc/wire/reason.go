package wire

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// ErrResuming is the error of a call that would create something in a resumed session before
// DropRest, which would delete it. Only a host that does not follow PROTOCOL.md gets it. The
// error also matches recipes.ErrInvalid, for hosts that do not know the reason.
var ErrResuming = errors.New("the session was resumed, and DropRest was not called")

// Domain is the ErrorInfo domain of the errors of this interface.
const Domain = "zkrecipes"

// A kind is one sentinel, its name on the wire, and the status code of a call that fails with
// it.
type kind struct {
	err    error
	reason string
	code   codes.Code
}

// kinds is append-only: a name that has been sent once is part of the interface. Specific
// reasons come before the general ones that they wrap, so that the first match is the most
// specific. An error with a code and no known reason is mapped to the code's first entry.
var kinds = []kind{
	{recipes.ErrExpired, "SESSION_EXPIRED", codes.FailedPrecondition},
	{recipes.ErrDeadline, "SESSION_DEADLINE", codes.FailedPrecondition},
	{recipes.ErrClosed, "SESSION_CLOSED", codes.FailedPrecondition},
	{recipes.ErrPluginLost, "PLUGIN_LOST", codes.FailedPrecondition},
	{recipes.ErrAuthFailed, "AUTH_FAILED", codes.Unauthenticated},
	{recipes.ErrRevoked, "REVOKED", codes.FailedPrecondition},
	{recipes.ErrRemoved, "REMOVED", codes.FailedPrecondition},
	{recipes.ErrReleased, "RELEASED", codes.FailedPrecondition},
	{recipes.ErrSessionLost, "SESSION_LOST", codes.FailedPrecondition},
	{recipes.ErrNotHeld, "NOT_HELD", codes.FailedPrecondition},
	{recipes.ErrUnknownOutcome, "UNKNOWN_OUTCOME", codes.Aborted},
	{ErrResuming, "RESUMING", codes.FailedPrecondition},
	{recipes.ErrInvalid, "INVALID", codes.InvalidArgument},
	{recipes.ErrUnavailable, "UNAVAILABLE", codes.Unavailable},
	{recipes.ErrContended, "CONTENDED", codes.FailedPrecondition},
	{recipes.ErrNoLeader, "NO_LEADER", codes.NotFound},
	{recipes.ErrNoNode, "NO_NODE", codes.NotFound},
	{recipes.ErrNodeExists, "NODE_EXISTS", codes.AlreadyExists},
	{recipes.ErrBadVersion, "BAD_VERSION", codes.FailedPrecondition},
	{recipes.ErrNotEmpty, "NOT_EMPTY", codes.FailedPrecondition},
	{recipes.ErrAccessDenied, "ACCESS_DENIED", codes.PermissionDenied},
	{recipes.ErrTooLarge, "TOO_LARGE", codes.ResourceExhausted},
	{recipes.ErrLimit, "LIMIT", codes.ResourceExhausted},
	{recipes.ErrNotRevocable, "NOT_REVOCABLE", codes.FailedPrecondition},
	{recipes.ErrMismatch, "MISMATCH", codes.FailedPrecondition},
	{recipes.ErrEmpty, "EMPTY", codes.NotFound},
	{recipes.ErrNoTransaction, "NO_TRANSACTION", codes.NotFound},
	{recipes.ErrUnknownSite, "UNKNOWN_SITE", codes.FailedPrecondition},
	{recipes.ErrVoted, "VOTED", codes.FailedPrecondition},
	{recipes.ErrUndecided, "UNDECIDED", codes.FailedPrecondition},
	{recipes.ErrInternal, "INTERNAL", codes.Internal},
	{context.Canceled, "CANCELED", codes.Canceled},
	{context.DeadlineExceeded, "DEADLINE_EXCEEDED", codes.DeadlineExceeded},
	{recipes.ErrOverflow, "OVERFLOW", codes.OutOfRange},
	{recipes.ErrUnsupported, "UNSUPPORTED", codes.Unimplemented},
	{recipes.ErrQuota, "QUOTA", codes.ResourceExhausted},
	{recipes.ErrSASLRequired, "SASL_REQUIRED", codes.Unauthenticated},
	{recipes.ErrThrottled, "THROTTLED", codes.Unavailable},
	{recipes.ErrForeign, "FOREIGN", codes.FailedPrecondition},
}

// matching returns the kinds that err matches, in the order of the table. An error that
// matches none is an internal one.
func matching(err error) []kind {
	var ks []kind
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			ks = append(ks, k)
		}
	}
	if len(ks) == 0 {
		ks = []kind{{recipes.ErrInternal, "INTERNAL", codes.Internal}}
	}
	return ks
}

// reasons returns the names of the kinds that err matches.
func reasons(err error) []string {
	var names []string
	for _, k := range matching(err) {
		names = append(names, k.reason)
	}
	return names
}

// sentinels returns the sentinels of the names, and ignores names that a newer plugin has
// added.
func sentinels(names []string) []error {
	var errs []error
	for _, k := range kinds {
		for _, name := range names {
			if k.reason == name {
				errs = append(errs, k.err)
				break
			}
		}
	}
	return errs
}

// byCode returns the sentinel for an error without a known reason. FailedPrecondition has too
// many meanings to choose one.
func byCode(code codes.Code) error {
	if code == codes.FailedPrecondition {
		return recipes.ErrInternal
	}
	for _, k := range kinds {
		if k.code == code {
			return k.err
		}
	}
	return recipes.ErrInternal
}
