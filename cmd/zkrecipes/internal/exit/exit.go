// Package exit defines the exit codes of zkrecipes and maps errors to them.
package exit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// The exit codes are part of the interface, and the help of each verb lists its own. A verb
// that runs a command returns the command's exit code. Its other codes are in the range that
// env, nohup and timeout use.
const (
	OK      = 0
	Failed  = 1 // verbs without a command
	Misuse  = 2 // nothing was done
	Absent  = 3 // verbs without a command: the requested thing does not exist
	Refused = 4 // verbs without a command: it belongs to another client, or has changed; nothing was done
	Aborted = 5 // the decision of a transaction is to abort
	Unknown = 6 // it may have been done or not: check before you repeat it
	Lost    = 123
	Timeout = 124 // not granted with -try or within -timeout
	Own     = 125 // verbs with a command: zkrecipes or ZooKeeper failed
	Cannot  = 126
	Missing = 127
	// 128+n, after signal n: package job.
)

// Error is an error with its exit code. If Err is nil, zkrecipes prints no error.
type Error struct {
	Code int
	Err  error
}

func (e Error) Error() string { return fmt.Sprint(e.Err) }

func (e Error) Unwrap() error { return e.Err }

// With returns an error with an exit code.
func With(code int, format string, args ...any) error {
	return Error{code, fmt.Errorf(format, args...)}
}

// Silently returns an exit code whose reason was already printed.
func Silently(code int) error { return Error{Code: code} }

// Usage returns an error in the command line or the configuration.
func Usage(format string, args ...any) error { return With(Misuse, format, args...) }

// Code returns the exit code of err. For an error without a code it returns otherwise.
func Code(err error, otherwise int) int {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[Error](err); ok {
		return e.Code
	}
	return otherwise
}

// OwnError is a failure of zkrecipes or of ZooKeeper: the plugin did not start, or no server
// answered. Its exit code is the verb's code for failures, whatever error it wraps.
type OwnError struct{ Err error }

func (e OwnError) Error() string { return e.Err.Error() }

func (e OwnError) Unwrap() error { return e.Err }

// contract maps errors of package recipes to exit codes. The first match counts. An unknown
// outcome comes first, because it matters more than the loss of the session that caused it.
var contract = []struct {
	code int
	is   []error
}{
	{Unknown, []error{recipes.ErrUnknownOutcome}},
	{Misuse, []error{recipes.ErrInvalid, recipes.ErrUnknownSite}},
	{Lost, []error{recipes.ErrSessionLost}},
	{Absent, []error{recipes.ErrNoNode, recipes.ErrNoTransaction}},
	{Refused, []error{
		recipes.ErrNodeExists, recipes.ErrBadVersion, recipes.ErrNotEmpty, recipes.ErrVoted,
		recipes.ErrUndecided, recipes.ErrNotHeld,
	}},
	{OK, []error{recipes.ErrUnavailable}}, // keep the verb's code for failures
	{Timeout, []error{context.DeadlineExceeded}},
}

// Coded adds the exit code to an error of package recipes. It keeps a code that err has.
func Coded(err error) error {
	_, already := errors.AsType[Error](err)
	_, own := errors.AsType[OwnError](err)
	if err == nil || already || own {
		return err
	}
	for _, kind := range contract {
		if slices.ContainsFunc(kind.is, func(sentinel error) bool { return errors.Is(err, sentinel) }) {
			if kind.code == OK {
				return err
			}
			return Error{kind.code, err}
		}
	}
	return err
}

// Advice returns what the user can do about an error that any request may return, or "".
func Advice(err error) string {
	switch {
	case errors.Is(err, recipes.ErrQuota):
		return "delete what is not needed, or raise the quota: setquota in ZooKeeper's zkCli.sh"
	case errors.Is(err, recipes.ErrSASLRequired):
		return "add a sasl block to the zookeeper block of the configuration; or, if the servers allow digest (enforce.auth.schemes), set user and password in the auth block"
	case errors.Is(err, recipes.ErrThrottled):
		return "the server is overloaded: try again later; zookeeper.throttledOpWaitTime is its limit"
	}
	return ""
}
