// Zkrecipes makes the ZooKeeper recipes available on the command line. It runs commands
// under locks, elections and barriers, and has verbs for the other recipes.
//
//	zkrecipes lock /backups/db1 -- ./backup.sh
//	zkrecipes elect /service/leader -- ./serve
//	zkrecipes queue put /mail "to alice"
//	zkrecipes contenders /backups/db1
//	zkrecipes doctor
//
// It is a host like any other: every request goes through the plugin process. Package
// host/hostconfig reads its configuration. "zkrecipes -autocomplete-install" adds completion
// of verbs, flags and paths to the user's shells.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/cli"
	"github.com/mitchellh/go-wordwrap"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/data"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/look"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/run"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/printable"
	"github.com/zkrecipes/zkrecipes/internal/version"
)

var verbs = slices.Concat(run.Verbs, look.Verbs, data.Verbs, []verb.Verb{completion})

// prefixes are the first words of two-word verbs, each with its synopsis.
var prefixes = map[string]string{
	"barrier": "Make other clients wait until a barrier is removed",
	"counter": "Count across machines",
	"latch":   "Wait until something was done a number of times",
	"queue":   "Put elements into a queue, and take them from it",
	"config":  "Show, change and watch a configuration",
	"group":   "Join a group, and list its members",
	"names":   "Register names, and look them up",
	"tx":      "Begin, vote in and end two-phase commits",
}

func main() { os.Exit(job.Reap(Main)) }

// Main runs the tool and returns its exit code.
func Main() int { return call(verb.NewTool(os.Stdout, os.Stderr), os.Args[1:]) }

func call(t *verb.Tool, args []string) int {
	if len(args) > 2 && args[0] == job.ExecFlag {
		t.Fail(job.Exec(args[1:]), exit.Cannot)
		return exit.Cannot
	}
	c := cli.NewCLI("zkrecipes", version.Line("zkrecipes"))
	c.HelpWriter, c.ErrorWriter = printable.Writer(t.Stdout, printable.Text), printable.Writer(t.Stderr, printable.Text)
	c.Commands = commands(t)
	c.HelpFunc = help
	if len(args) > 0 && args[0] == "help" {
		words := slices.DeleteFunc(slices.Clone(args[1:]), isHelp)
		if len(words) != 1 || prefixes[words[0]] == "" {
			return explain(t, words, c.Commands)
		}
		args = append(words, "-h") // the library lists the verbs
	}
	c.Args = separate(args)
	if slices.Equal(c.Args, []string{"version"}) {
		c.Args = []string{"-version"}
	}
	c.Autocomplete = false // the library would answer whenever COMP_LINE is set
	if len(args) > 0 && args[0] == "-complete" {
		return answer(t, args[1:])
	}
	if len(c.Args) == 1 {
		switch c.Args[0] {
		case "-autocomplete-install", "--autocomplete-install":
			return installCompletion(t, false)
		case "-autocomplete-uninstall", "--autocomplete-uninstall":
			return installCompletion(t, true)
		}
	}
	if name := c.Subcommand(); name != "" && !c.IsHelp() && !c.IsVersion() {
		// For these mistakes the library prints the help and no error.
		switch {
		case c.Args[0] == "": // for example an empty variable before the verb
			return unknown(t, "", c.Commands)
		case c.Commands[name] == nil:
			return unknown(t, name, c.Commands)
		case strings.HasPrefix(c.Args[0], "-"):
			return misused(t, "flags go after the verb: zkrecipes %s %s ...; see zkrecipes %[1]s -h, or zkrecipes help %[1]s", name, c.Args[0])
		}
	}
	code, err := c.Run()
	if err != nil {
		return misused(t, "%w", err)
	}
	if c.Commands[c.Subcommand()] == nil && code != exit.OK {
		return exit.Misuse // the library returns 127
	}
	return code
}

func commands(t *verb.Tool) map[string]cli.CommandFactory {
	all := map[string]cli.CommandFactory{}
	for name, synopsis := range prefixes {
		p := &prefix{tool: t, name: name, synopsis: synopsis}
		for _, v := range verbs {
			if second, ok := strings.CutPrefix(v.Name, name+" "); ok {
				p.verbs = append(p.verbs, second)
			}
		}
		slices.Sort(p.verbs)
		all[name] = func() (cli.Command, error) { return p, nil }
	}
	for _, v := range verbs {
		all[v.Name] = func() (cli.Command, error) { return &verb.Command{Tool: t, Verb: v, Action: v.New()}, nil }
	}
	return all
}

// separate inserts "--" after the verb, which ends the library's own flags. Without it, the
// library would read an element "-h" as a flag. It would put nothing, and return exit code 0.
func separate(args []string) []string {
	for words := 1; words <= min(2, len(args)); words++ {
		name := strings.Join(args[:words], " ")
		if slices.ContainsFunc(verbs, func(v verb.Verb) bool { return v.Name == name }) {
			return slices.Insert(slices.Clone(args), words, "--")
		}
	}
	return args
}

// prefix is the first word of two-word verbs: "queue" of "queue put" and "queue take". It
// does nothing itself, and its help lists the verbs.
type prefix struct {
	tool           *verb.Tool
	name, synopsis string
	verbs          []string
}

// Run implements cli.Command.
func (p *prefix) Run(args []string) int {
	what := "is missing"
	if len(args) > 0 {
		what = fmt.Sprintf("%q is unknown%s", args[0], suggestion(args[0], p.verbs))
	}
	return misused(p.tool, "%s: the verb %s; one of %s; see zkrecipes %s -h", p.name, what, strings.Join(p.verbs, ", "), p.name)
}

// Help implements cli.Command. The library appends the list of verbs.
func (p *prefix) Help() string {
	return fmt.Sprintf("Usage: zkrecipes %s VERB [flags] ...\n\n%s.\nzkrecipes %[1]s VERB -h explains a verb, zkrecipes help %[1]s VERB in full.", p.name, p.synopsis)
}

// Synopsis implements cli.Command.
func (p *prefix) Synopsis() string { return p.synopsis }

// misused reports a mistake in the command line and returns its exit code.
func misused(t *verb.Tool, format string, args ...any) int {
	t.Fail(fmt.Errorf(format, args...), exit.Misuse)
	return exit.Misuse
}

func unknown(t *verb.Tool, name string, commands map[string]cli.CommandFactory) int {
	first := slices.DeleteFunc(slices.Sorted(maps.Keys(commands)), func(verb string) bool { return strings.Contains(verb, " ") })
	return misused(t, "the verb %q is unknown%s; one of %s; see zkrecipes -h, or zkrecipes help", name, suggestion(name, first), strings.Join(first, ", "))
}

// suggestion asks whether the verb closest to name was meant, or returns "" if none is close.
// Two exchanged letters have a distance of 2. Short verbs need a closer match.
func suggestion(name string, verbs []string) string {
	best, least := "", len(name)
	for _, verb := range verbs {
		if d := levenshtein.Distance(name, verb, nil); d < least && d <= max(min(2, len(verb)/2), len(verb)/4) {
			best, least = verb, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(". Did you mean %q?", best)
}

// help is what zkrecipes -h prints. It fits on a screen, so it only names the verbs.
func help(map[string]cli.CommandFactory) string {
	return fmt.Sprintf(`Usage: zkrecipes VERB [flags] ...

Runs commands under locks, elections and barriers on ZooKeeper, and has verbs
for its other recipes.

Examples:
    zkrecipes lock -servers zk1:2181,zk2:2181 /backups/db1 -- ./backup.sh
    zkrecipes queue put /mail 'to alice'
    zkrecipes doctor

Verbs that run a command:
%s
Verbs that read and change data:
%s
Verbs for operation:
%s

Flags:
  -version    show the version

zkrecipes VERB -h explains a verb, with its exit codes.
More: zkrecipes help, man zkrecipes`,
		firstWords(run.Verbs), firstWords(data.Verbs), firstWords(append(slices.Clone(look.Verbs), completion)))
}

func firstWords(verbs []verb.Verb) string {
	words := verb.List(verbs, func(v verb.Verb) string { first, _, _ := strings.Cut(v.Name, " "); return first })
	slices.Sort(words)
	list := wordwrap.WrapString(strings.Join(slices.Compact(words), ", "), helptext.Columns-4)
	return "    " + strings.ReplaceAll(list, "\n", "\n    ")
}

// longHelp is what zkrecipes help prints. It lists all verbs, and the flags that come without
// a verb.
func longHelp(commands map[string]cli.CommandFactory) string {
	return cli.BasicHelpFunc("zkrecipes")(commands) + `
Flags:

    -autocomplete-install      add completion of verbs, flags and paths to bash, zsh and fish
    -autocomplete-uninstall    remove it
    -version                   show the version

zkrecipes VERB -h explains a verb on one screen, zkrecipes help VERB with all rules and flags.`
}

// explain prints the long help of the verb that these words name, or of the tool if there are none,
// and returns the exit code. It runs nothing, whatever follows the verb.
func explain(t *verb.Tool, words []string, commands map[string]cli.CommandFactory) int {
	if len(words) == 0 {
		fmt.Fprintln(t.Stdout, longHelp(commands))
		return exit.OK
	}
	name := strings.Join(words, " ")
	for _, v := range verbs {
		switch more, begins := strings.CutPrefix(name+" ", v.Name+" "); {
		case begins && more == "":
			fmt.Fprintln(t.Stdout, (&verb.Command{Tool: t, Verb: v, Action: v.New()}).LongHelp())
			return exit.OK
		case begins:
			return misused(t, "help takes only a verb: zkrecipes help %s", v.Name)
		}
	}
	if commands[words[0]] == nil {
		return unknown(t, words[0], commands)
	}
	first, _ := commands[words[0]]() // a prefix
	return first.Run(words[1:])
}

func isHelp(word string) bool { return word == "-h" || word == "-help" || word == "--help" }
