// Package exit has the exit codes of zkrecipes, and gives each error its own.
package exit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Exit codes. They are part of the interface, and the help lists them. Verbs that
// run a command return what it does, so that their own are where env, nohup and
// timeout have theirs.
const (
	OK      = 0
	Failed  = 1 // verbs without a command
	Misuse  = 2 // nothing was done
	Absent  = 3 // verbs without a command, as the next three: what was asked for is not there
	Refused = 4 // what is there is another's, or has changed; nothing was done
	Aborted = 5 // the decision of a transaction is to abort
	Unknown = 6 // it may have been done or not: look before it is done again
	Lost    = 123
	Timeout = 124 // not granted, with -try or in -timeout
	Own     = 125 // verbs with a command: something of ours failed
	Cannot  = 126
	Missing = 127
	// A signal n has ended it: 128+n, from package job.
)

// Error is an error with its exit code. Without Err there is nothing more to say.
type Error struct {
	Code int
	Err  error
}

func (e Error) Error() string { return fmt.Sprint(e.Err) }

func (e Error) Unwrap() error { return e.Err }

// With is an error with a code.
func With(code int, format string, args ...any) error {
	return Error{code, fmt.Errorf(format, args...)}
}

// Silently is a code of which people know why.
func Silently(code int) error { return Error{Code: code} }

// Usage is an error in what the user asked for.
func Usage(format string, args ...any) error { return With(Misuse, format, args...) }

// Code returns the exit code for an error of a verb.
func Code(err error, otherwise int) int {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[Error](err); ok {
		return e.Code
	}
	return otherwise
}

// OwnError is a failure of zkrecipes or of ZooKeeper: the plugin did not start, or no
// server answered. The verb's own code says so, whatever error is wrapped.
type OwnError struct{ Err error }

func (e OwnError) Error() string { return e.Err.Error() }

func (e OwnError) Unwrap() error { return e.Err }

// contract are the codes of the contract's errors. An unknown outcome comes first: it says
// more than the loss of the session that has caused it.
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
	{OK, []error{recipes.ErrUnavailable}}, // which is what the verb says
	{Timeout, []error{context.DeadlineExceeded}},
}

// Coded gives an error of the contract its exit code.
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

// Advised adds to an error what a person can do about it.
func Advised(err error) error {
	if advice := Advice(err); advice != "" {
		return fmt.Errorf("%w; %s", err, advice)
	}
	return err
}

// Advice returns what to do about an error that any request may get, or "".
func Advice(err error) string {
	switch {
	case errors.Is(err, recipes.ErrQuota):
		return "delete what is not needed, or raise the quota: setquota in ZooKeeper's zkCli.sh"
	case errors.Is(err, recipes.ErrSASLRequired):
		return "zkrecipes does not support SASL; the servers have to allow sessions without it, or with digest"
	case errors.Is(err, recipes.ErrThrottled):
		return "the server is overloaded: try again later; zookeeper.throttledOpWaitTime is its limit"
	}
	return ""
}
