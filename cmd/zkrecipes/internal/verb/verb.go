// Package verb is what the verbs of zkrecipes share: how one is declared, its flags, its
// session through the plugin, its waits, and what it writes.
//
//  1. A [Verb] is a value of its package, and stands in the table Verbs of it.
//  2. Its [Action] is made for each call, takes flags and arguments, and runs.
//  3. An action that asks once uses [Once] or [Ask]; one that waits, [Wait] or [WaitFor]; one
//     that watches, [Follow].
//  4. It writes with the methods of [Tool], and returns an error of package exit.
package verb

import (
	"context"
	"flag"
)

// Verb is one verb of the tool.
type Verb struct {
	Name     string // one word, or two
	Usage    string // what follows the name on the command line
	Synopsis string // one line for the list of verbs
	// Help says in two sentences what the verb does. Two examples follow, then what else one
	// has to know, and at the end the exit codes.
	Help string
	New  func() Action

	Otherwise int // the exit code of an error that has none; 0 is exit.Failed
	// ExitCodeOnly verbs have no result, but in JSON; or one that a caller may well drop, as
	// the name of an element that was put. That is not refused, because a closed stdout cannot
	// be distinguished from the one that Python's DEVNULL and Node's "ignore" give: the null
	// device, opened for reading and writing.
	ExitCodeOnly bool
}

// Action is what one call of a verb does. A method Resultless() bool may say that it has no
// result, because stdout is a command's.
type Action interface {
	// Flags defines the flags that only this verb has.
	Flags(*flag.FlagSet)
	// Arguments takes what follows the flags. An error is a usage error.
	Arguments([]string) error
	Run(context.Context, *Tool) error
}

// New makes an action, as the field of that name does.
func New[T any, A interface {
	*T
	Action
}]() Action {
	return A(new(T))
}
