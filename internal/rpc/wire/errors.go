// Package wire converts between the types of the contract (package recipes) and the messages
// of zkrecipes.v1. Its functions are pure: ToX converts a value to its message, X converts a
// message back, and none has logic of its own. A message that is nil becomes the zero value.
//
// One table (kinds) converts errors in both directions, so that errors.Is gives the
// same answers on both sides.
package wire

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Names of the metadata entries of ErrorInfo.
const (
	metaReasons    = "reasons"
	metaWriteIndex = "write_index"
	metaWriteCause = "write_cause"
)

// maxText bounds the text of an error on the wire. The text is sent in HTTP/2 headers, whose
// size is limited. gRPC would replace an error that is too large by another one.
const maxText = 2 << 10

// A Remote is an error received over the wire: the text from the other side, and the
// sentinels that it matches.
type Remote struct {
	text string
	is   []error
}

func (e *Remote) Error() string   { return e.text }
func (e *Remote) Unwrap() []error { return e.is }

// ToStatus returns the gRPC status error for err; nil for nil.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}
	names := reasons(err)
	info := &errdetails.ErrorInfo{
		Domain:   Domain,
		Reason:   names[0],
		Metadata: map[string]string{metaReasons: strings.Join(names, ",")},
	}
	if we, ok := errors.AsType[*recipes.WriteError](err); ok {
		info.Metadata[metaWriteIndex] = strconv.Itoa(we.Index)
		if we.Err != nil {
			info.Metadata[metaWriteCause] = text(we.Err)
		}
	}
	s := status.New(matching(err)[0].code, text(err))
	details := []protoadapt.MessageV1{info}
	if taken, ok := errors.AsType[*recipes.TakenError](err); ok {
		details = append(details, ToTaken(taken))
	}
	if foreign, ok := errors.AsType[*recipes.ForeignError](err); ok {
		details = append(details, ToForeign(foreign))
	}
	s, derr := s.WithDetails(details...)
	if derr != nil { // impossible: all messages marshal
		return status.Error(matching(err)[0].code, text(err))
	}
	return s.Err()
}

// Error returns the contract's error for a call that failed with err. answered reports
// whether the other side's recipes returned it. If not, gRPC itself failed, and it is unknown
// whether the call was carried out. An error without a gRPC status is returned unchanged.
func Error(err error) (e error, answered bool) {
	if err == nil {
		return nil, false
	}
	s, ok := status.FromError(err)
	if !ok {
		return err, false
	}
	info := errorInfo(s)
	if info == nil && s.Code() == codes.Unimplemented {
		return unsupported(s), true
	}
	if info == nil && s.Code() == codes.ResourceExhausted {
		text := fmt.Sprintf("%s; the plugin's bound is plugin.Limits.Message, 64 MiB by default: send less in one call, or raise it in the plugin", s.Message())
		return &Remote{text: text, is: []error{recipes.ErrTooLarge}}, false
	}
	if info == nil {
		return &Remote{text: s.Message(), is: []error{byCode(s.Code())}}, false
	}
	is := sentinels(append(strings.Split(info.GetMetadata()[metaReasons], ","), info.GetReason()))
	if len(is) == 0 {
		is = []error{byCode(s.Code())}
	}
	if t, ok := detail[*pb.Taken](s); ok {
		is = append(is, fromTaken(t))
	}
	if f, ok := detail[*pb.Foreign](s); ok {
		is = append(is, fromForeign(f))
	}
	return &Remote{text: s.Message(), is: is}, true
}

// unsupported returns the error for a service or a method that is newer than the plugin. gRPC
// returns this status, and not the plugin. It is certain that the call was not carried out.
func unsupported(s *status.Status) error {
	return &Remote{text: fmt.Sprintf("%v: %s", recipes.ErrUnsupported, s.Message()), is: []error{recipes.ErrUnsupported}}
}

// WriteError converts the error of a guarded write of ops, like Error. If one of the
// operations failed, the error is a *recipes.WriteError with that operation.
func WriteError(err error, ops []recipes.Op) (e error, answered bool) {
	e, answered = Error(err)
	if !answered {
		return e, answered
	}
	info := errorInfo(status.Convert(err))
	i, perr := strconv.Atoi(info.GetMetadata()[metaWriteIndex])
	if perr != nil || i < 0 || i >= len(ops) {
		return e, answered
	}
	cause := e
	if remote, ok := errors.AsType[*Remote](e); ok {
		cause = &Remote{text: info.GetMetadata()[metaWriteCause], is: remote.is}
	}
	return &recipes.WriteError{Index: i, Op: ops[i], Err: cause}, answered
}

func errorInfo(s *status.Status) *errdetails.ErrorInfo {
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == Domain {
			return info
		}
	}
	return nil
}

// detail returns the first detail of that type.
func detail[D any](s *status.Status) (d D, ok bool) {
	for _, m := range s.Details() {
		if d, ok = m.(D); ok {
			break
		}
	}
	return d, ok
}

// ToFailure returns err as a message of a stream; nil for nil.
func ToFailure(err error) *pb.Failure {
	if err == nil {
		return nil
	}
	return &pb.Failure{Message: text(err), Reasons: reasons(err)}
}

// ToResult converts the result of one of several operations. Result is the reverse.
func ToResult(err error) *pb.Failure {
	if err == nil {
		return new(pb.Failure)
	}
	return ToFailure(err)
}

func Result(f *pb.Failure) error {
	if len(f.GetReasons()) == 0 {
		return nil
	}
	return &Remote{text: f.GetMessage(), is: sentinels(f.GetReasons())}
}

// Failure returns the error that a stream reports. If the error does not match base, because
// the other side is newer or broken, base is added. The host's reaction depends on the kind
// of event, and must not depend on the names that the plugin sends.
func Failure(f *pb.Failure, base error) error {
	is := sentinels(f.GetReasons())
	e := &Remote{text: f.GetMessage(), is: is}
	if e.text == "" {
		e.text = base.Error()
	}
	if !errors.Is(e, base) {
		e.is = append(e.is, base)
	}
	return e
}

func text(err error) string {
	s := Text(err.Error())
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + fmt.Sprintf("... (%d bytes)", len(s))
}

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
	{recipes.ErrNotContinued, "SESSION_NOT_CONTINUED", codes.FailedPrecondition},
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

// byCode returns the sentinel for an error without a known reason. FailedPrecondition has none,
// because it has too many meanings.
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

// Each converts a list, in the same order.
func Each[A, B any](list []A, convert func(A) B) []B {
	out := make([]B, len(list))
	for i, a := range list {
		out[i] = convert(a)
	}
	return out
}

// Strings converts between strings and their named types.
func Strings[B, A ~string](list []A) []B { return Each(list, func(a A) B { return B(a) }) }
