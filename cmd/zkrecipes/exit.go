package main

import (
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Exit codes. They are part of the interface, and the help lists them. Verbs that
// run a command return what it does, so that their own are where env, nohup and
// timeout have theirs.
const (
	exitOK      = 0
	exitFailed  = 1 // verbs without a command
	exitUsage   = 2 // nothing was done
	exitAbsent  = 3 // verbs without a command, as the next three: what was asked for is not there
	exitRefused = 4 // what is there is another's, or has changed; nothing was done
	exitAborted = 5 // the decision of a transaction is to abort
	exitUnknown = 6 // it may have been done or not: look before it is done again
	exitLost    = 123
	exitTimeout = 124 // not granted, with -try or in -timeout
	exitOwn     = 125 // verbs with a command: something of ours failed
	exitCannot  = 126
	exitMissing = 127
	// A signal n has ended it: 128+n, from package job.
)

// advised adds to an error what a person can do about it.
func advised(err error) error {
	if advice := adviceOn(err); advice != "" {
		return fmt.Errorf("%w; %s", err, advice)
	}
	return err
}

// adviceOn returns what to do about an error that any request may get, or "".
func adviceOn(err error) string {
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

// exitError is an error with its exit code.
type exitError struct {
	code int
	error
}

func (e exitError) Unwrap() error { return e.error }

func exitWith(code int, format string, args ...any) error {
	return exitError{code, fmt.Errorf(format, args...)}
}

// usage is an error in what the user asked for.
func usage(format string, args ...any) error { return exitWith(exitUsage, format, args...) }

// code returns the exit code for an error of a verb.
func code(err error, otherwise int) int {
	var e exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	}
	return otherwise
}
