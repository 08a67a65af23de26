// Package verb contains the code that the verbs of zkrecipes share: their declaration, flags,
// sessions through the plugin, waits and output.
//
//  1. A [Verb] is a package variable, listed in the table Verbs of its package.
//  2. Each call creates its [Action], which takes flags and arguments, and runs.
//  3. An action that sends one request uses [Once] or [Ask]. One that waits uses [Wait] or
//     [WaitFor], and one that watches uses [Follow].
//  4. It writes with the methods of [Tool], and returns an error of package exit.
package verb

import (
	"context"
	"flag"
)

// Verb is one verb of the tool.
type Verb struct {
	Name     string // one word, or two
	Usage    string // flags and arguments, for the first line of the help
	Synopsis string // one line for the list of verbs
	// Help begins with two sentences on what the verb does. Two examples follow, then the
	// rules, and at the end the exit codes.
	Help string
	New  func() Action

	Otherwise int // the exit code of an error without one; 0 is exit.Failed
	// ExitCodeOnly means that the verb runs with a closed stdout too, except with -format=json.
	// As text it writes no result, or one that callers often drop, such as the name of an
	// element. Python's DEVNULL and Node's "ignore" make stdout the null device, opened for
	// reading and writing, and that cannot be distinguished from a closed stdout.
	ExitCodeOnly bool
}

// Action is one call of a verb. Its optional method Resultless() bool reports whether it
// writes no result, because stdout belongs to a command.
type Action interface {
	// Flags defines the flags that only this verb has.
	Flags(*flag.FlagSet)
	// Arguments takes the arguments after the flags. Its error is a usage error.
	Arguments([]string) error
	Run(context.Context, *Tool) error
}

// New creates an action: a value for the field of that name.
func New[T any, A interface {
	*T
	Action
}]() Action {
	return A(new(T))
}
