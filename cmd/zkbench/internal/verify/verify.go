// Package verify checks a plugin executable or a host program, in any language, against
// plugin/proto/PROTOCOL.md, and a plugin also against the contract of package recipes.
//
// A part is one promise. The parts of the protocol start the plugin themselves, and speak gRPC
// without TLS, as the simplest host does. The parts of the contract are those of package
// recipestest. They use one plugin, which the Go host has launched with mutual TLS.
//
// The parts of a host start the host program, and give it steps on its stdin. The host starts a
// plugin of this program, which the parts control: see control.
package verify

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// Options say what to verify.
type Options struct {
	// Command is the plugin, or the host program, with its arguments. Its first element is a path.
	Command []string

	// Servers are the servers for the contract; none means one in this process. recipestest
	// says how to configure them.
	Servers []string

	// Only selects parts by their names; nil selects all.
	Only *regexp.Regexp

	// Limit bounds the time of each part. Parallel is the number of parts that run at the same
	// time. Both are positive.
	Limit    time.Duration
	Parallel int
}

// Result is the outcome of a part. It has passed if Failures and Skipped are empty.
type Result struct {
	Name     string
	Failures []string
	Skipped  string // why
}

// String returns the result in one line.
func (r Result) String() string {
	switch {
	case len(r.Failures) > 0:
		texts := make([]string, len(r.Failures))
		for i, f := range r.Failures {
			texts[i] = strings.Join(strings.Fields(f), " ")
		}
		return "FAIL " + r.Name + ": " + strings.Join(texts, "; ")
	case r.Skipped != "":
		return "skip " + r.Name + ": " + r.Skipped
	}
	return "pass " + r.Name
}

// part is one promise. Its check ends with require, failf or got, or passes.
type part struct {
	name  string
	check func(context.Context)
}

// skipped is the error of a part that cannot be checked.
type skipped string

func (s skipped) Error() string { return string(s) }

// failures is the error of a part of which several checks failed.
type failures []string

func (f failures) Error() string { return strings.Join(f, "; ") }

// ended is the panic with which require ends a part.
type ended struct{ error }

// require ends the part if there is an error, as testing.TB.Fatal does. Call it only in the goroutine of
// the part.
func require(err error) {
	if err != nil {
		panic(ended{err})
	}
}

// got is require for a call with a result.
func got[T any](result T, err error) T {
	require(err)
	return result
}

func failf(format string, args ...any) { require(fmt.Errorf(format, args...)) }

// outcome returns the error that has ended the part, or nil.
func (p part) outcome(ctx context.Context) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case ended:
			err = v.error
		default:
			panic(v)
		}
	}()
	p.check(ctx)
	return nil
}

func (p part) run(ctx context.Context) Result {
	r, err := Result{Name: p.name}, p.outcome(ctx)
	if why, ok := errors.AsType[skipped](err); ok {
		r.Skipped = string(why)
	} else if several, ok := errors.AsType[failures](err); ok {
		r.Failures = several
	} else if err != nil {
		r.Failures = strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }) // of errors.Join
	}
	return r
}

// Plugin checks a plugin. It yields the results in the order of the parts. An error means that
// there is nothing to check: the command is no plugin, or Only selects nothing.
func Plugin(ctx context.Context, o Options, yield func(done, of int, r Result)) error {
	server, err := zkserver.Listen(contractServer)
	if err != nil {
		return err
	}
	defer server.Close()
	if len(o.Servers) == 0 {
		o.Servers = []string{server.Addr()}
	}
	contract, stop, err := o.contractParts(ctx)
	if err != nil {
		return err
	}
	defer stop()
	return o.runAll(ctx, append(o.protocolParts(), contract...), yield)
}

func (o Options) runAll(ctx context.Context, parts []part, yield func(done, of int, r Result)) error {
	if o.Only != nil {
		parts = slices.DeleteFunc(parts, func(p part) bool { return !o.Only.MatchString(p.name) })
	}
	if len(parts) == 0 {
		return fmt.Errorf("no part matches %q", o.Only)
	}
	results := make([]chan Result, len(parts))
	for i := range parts {
		results[i] = make(chan Result, 1)
	}
	turns := make(chan struct{}, o.Parallel)
	go func() { // ends before the last part
		for i, p := range parts {
			turns <- struct{}{}
			go func() {
				ctx, cancel := context.WithTimeout(ctx, o.Limit)
				defer cancel()
				results[i] <- p.run(ctx)
				<-turns
			}()
		}
	}()
	for i := range parts {
		yield(i+1, len(parts), <-results[i])
	}
	return ctx.Err()
}
