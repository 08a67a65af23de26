// Zkrecipes brings the ZooKeeper recipes to the command line: it runs commands
// under locks, elections and barriers, and has a verb or several for
// each of the other recipes.
//
//	zkrecipes lock /backups/db1 -- ./backup.sh
//	zkrecipes elect /service/leader -- ./serve
//	zkrecipes queue put /mail "to alice"
//	zkrecipes contenders /backups/db1
//	zkrecipes doctor
//
// It is a host as any other: everything goes through the plugin process. The
// configuration is that of package host/hostconfig. "zkrecipes -autocomplete-install"
// has the shell complete verbs, flags and paths.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/cli"

	"github.com/zkrecipes/zkrecipes/internal/version"
)

func main() { os.Exit(Main()) }

// Main is main with an exit code.
func Main() int {
	t := newTool(os.Stdout, os.Stderr)
	c := cli.NewCLI("zkrecipes", version.Line("zkrecipes"))
	c.HelpWriter, c.ErrorWriter = os.Stdout, os.Stderr
	c.Commands = t.verbs()
	c.HelpFunc = help
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "help" { // of a verb, or of the tool
		args = append(slices.Clone(args[1:]), "-h")
	}
	c.Args = separate(args, c.Commands)
	if slices.Equal(c.Args, []string{"version"}) {
		c.Args = []string{"-version"}
	}
	completing := os.Getenv("COMP_LINE") != "" // then the arguments are the shell's own
	if len(c.Args) == 1 && !completing {
		switch c.Args[0] {
		case "-autocomplete-install", "--autocomplete-install":
			return t.installCompletion(false)
		case "-autocomplete-uninstall", "--autocomplete-uninstall":
			return t.installCompletion(true)
		}
	}
	if name := c.Subcommand(); name != "" && !completing && !c.IsHelp() && !c.IsVersion() {
		// Here the library would show a page of help, and not what is wrong.
		switch {
		case c.Args[0] == "": // as of a variable; separate has seen no verb
			return t.unknown("", c.Commands)
		case c.Commands[name] == nil:
			return t.unknown(name, c.Commands)
		case strings.HasPrefix(c.Args[0], "-"):
			return t.fail("zkrecipes", fmt.Errorf("flags go after the verb: zkrecipes %s %s ...; see zkrecipes %[1]s -h", name, c.Args[0]))
		}
	}
	code, err := c.Run()
	if err != nil {
		return t.fail("zkrecipes", err)
	}
	if c.Commands[c.Subcommand()] == nil && code != exitOK {
		return exitUsage // the library's own answer is a shell's for "not found"
	}
	return code
}

// separate puts "--" between a verb and what follows it: the library looks no further
// for flags of its own. It would take an element whose data is "-h" for a flag, put
// nothing, and return 0.
func separate(args []string, commands map[string]cli.CommandFactory) []string {
	for words := 1; words <= min(2, len(args)); words++ {
		factory := commands[strings.Join(args[:words], " ")]
		if factory == nil {
			continue
		}
		made, _ := factory()
		if _, verb := made.(*command); verb { // and no parent
			return slices.Insert(slices.Clone(args), words, "--")
		}
	}
	return args
}

// unknown says that there is no such verb.
func (t *tool) unknown(name string, commands map[string]cli.CommandFactory) int {
	verbs := slices.DeleteFunc(slices.Sorted(maps.Keys(commands)), func(verb string) bool { return strings.Contains(verb, " ") })
	return t.fail("zkrecipes", fmt.Errorf("the verb %q is unknown%s; one of %s; see zkrecipes -h", name, meant(name, verbs), strings.Join(verbs, ", ")))
}

// meant asks whether one of the verbs was meant: one that differs in a letter, and a long
// one in a few.
func meant(name string, verbs []string) string {
	best, least := "", len(name)
	for _, verb := range verbs {
		if d := distance(name, verb); d < least && d <= max(1, len(verb)/4) {
			best, least = verb, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(". Did you mean %q?", best)
}

// distance is the number of letters that are put in, left out, replaced or exchanged with
// their neighbour between two words.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
			default:
				same := rows[i-1][j-1]
				if a[i-1] != b[j-1] {
					same++
				}
				rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, same)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
				}
			}
		}
	}
	return rows[len(a)][len(b)]
}

func (t *tool) verbs() map[string]cli.CommandFactory {
	verb := func(v verb) cli.CommandFactory {
		return func() (cli.Command, error) { return &command{tool: t, verb: v}, nil }
	}
	verbs := map[string]cli.CommandFactory{
		"lock":       verb(&lockVerb{}),
		"elect":      verb(&electVerb{}),
		"revoke":     verb(&revokeVerb{}),
		"semaphore":  verb(&semaphoreVerb{}),
		"contenders": verb(&contendersVerb{}),
		"doctor":     verb(&doctorVerb{}),
		"init":       verb(&initVerb{}),
		"completion": verb(&completionVerb{}),

		"barrier set":    verb(&barrierSetVerb{}),
		"barrier remove": verb(&barrierRemoveVerb{}),
		"barrier wait":   verb(&barrierWaitVerb{}),
		"double-barrier": verb(&doubleBarrierVerb{}),
		"counter add":    verb(&counterAddVerb{}),
		"counter get":    verb(&counterGetVerb{}),
		"latch count":    verb(&latchCountVerb{}),
		"latch down":     verb(&latchDownVerb{}),
		"latch wait":     verb(&latchWaitVerb{}),
		"queue dead":     verb(&queueDeadVerb{}),
		"queue len":      verb(&queueLenVerb{}),
		"queue peek":     verb(&queuePeekVerb{}),
		"queue put":      verb(&queuePutVerb{}),
		"queue take":     verb(&queueTakeVerb{}),
		"queue work":     verb(&queueWorkVerb{}),

		"config delete": verb(&configDeleteVerb{}),
		"config get":    verb(&configGetVerb{}),
		"config set":    verb(&configSetVerb{}),
		"config watch":  verb(&configWatchVerb{}),
		"group join":    verb(&groupJoinVerb{}),
		"group members": verb(&groupMembersVerb{}),
		"group watch":   verb(&groupWatchVerb{}),

		"names list":       verb(&namesListVerb{}),
		"names lookup":     verb(&namesLookupVerb{}),
		"names register":   verb(&namesRegisterVerb{}),
		"names unregister": verb(&namesUnregisterVerb{}),

		"tx abort":  verb(&txAbortVerb{}),
		"tx begin":  verb(&txBeginVerb{}),
		"tx done":   verb(&txDoneVerb{}),
		"tx status": verb(&txStatusVerb{}),
		"tx vote":   verb(&txVoteVerb{}),
	}
	// Verbs of two words, such as "queue put", are in the table above.
	t.addParents(verbs, map[string]string{
		"barrier": "Make others wait until a barrier is removed",
		"counter": "Count across machines",
		"latch":   "Wait until something was done a number of times",
		"queue":   "Put into a queue, and take from it",
		"config":  "Show, change and watch a configuration",
		"group":   "Join a group and see who is in it",
		"names":   "Register names, and look them up",
		"tx":      "Begin, vote in and end two-phase commits",
	})
	return verbs
}
