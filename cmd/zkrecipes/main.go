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
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/cli"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/data"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/look"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/run"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/version"
)

// verbs are all verbs.
var verbs = slices.Concat(run.Verbs, look.Verbs, data.Verbs, []verb.Verb{completion})

// families are the first words of verbs of two words.
var families = map[string]string{
	"barrier": "Make others wait until a barrier is removed",
	"counter": "Count across machines",
	"latch":   "Wait until something was done a number of times",
	"queue":   "Put into a queue, and take from it",
	"config":  "Show, change and watch a configuration",
	"group":   "Join a group and see who is in it",
	"names":   "Register names, and look them up",
	"tx":      "Begin, vote in and end two-phase commits",
}

func main() { os.Exit(Main()) }

// Main is main with an exit code.
func Main() int {
	t := verb.NewTool(os.Stdout, os.Stderr)
	c := cli.NewCLI("zkrecipes", version.Line("zkrecipes"))
	c.HelpWriter, c.ErrorWriter = os.Stdout, os.Stderr
	c.Commands = commands(t)
	c.HelpFunc = help
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "help" { // of a verb, or of the tool
		args = append(slices.Clone(args[1:]), "-h")
	}
	c.Args = separate(args)
	if slices.Equal(c.Args, []string{"version"}) {
		c.Args = []string{"-version"}
	}
	completing := os.Getenv("COMP_LINE") != "" // then the arguments are the shell's own
	if len(c.Args) == 1 && !completing {
		switch c.Args[0] {
		case "-autocomplete-install", "--autocomplete-install":
			return installCompletion(t, false)
		case "-autocomplete-uninstall", "--autocomplete-uninstall":
			return installCompletion(t, true)
		}
	}
	if name := c.Subcommand(); name != "" && !completing && !c.IsHelp() && !c.IsVersion() {
		// Here the library would show a page of help, and not what is wrong.
		switch {
		case c.Args[0] == "": // as of a variable; separate has seen no verb
			return unknown(t, "", c.Commands)
		case c.Commands[name] == nil:
			return unknown(t, name, c.Commands)
		case strings.HasPrefix(c.Args[0], "-"):
			return misused(t, "flags go after the verb: zkrecipes %s %s ...; see zkrecipes %[1]s -h", name, c.Args[0])
		}
	}
	code, err := c.Run()
	if err != nil {
		return misused(t, "%w", err)
	}
	if c.Commands[c.Subcommand()] == nil && code != exit.OK {
		return exit.Misuse // the library's own answer is a shell's for "not found"
	}
	return code
}

// commands are the verbs and the families by their names.
func commands(t *verb.Tool) map[string]cli.CommandFactory {
	all := map[string]cli.CommandFactory{}
	for name, synopsis := range families {
		f := &family{tool: t, name: name, synopsis: synopsis}
		for _, v := range verbs {
			if second, ok := strings.CutPrefix(v.Name, name+" "); ok {
				f.verbs = append(f.verbs, second)
			}
		}
		slices.Sort(f.verbs)
		all[name] = func() (cli.Command, error) { return f, nil }
	}
	for _, v := range verbs {
		all[v.Name] = func() (cli.Command, error) { return &verb.Command{Tool: t, Verb: v, Action: v.New()}, nil }
	}
	return all
}

// separate puts "--" between a verb and what follows it: the library looks no further
// for flags of its own. It would take an element whose data is "-h" for a flag, put
// nothing, and return 0.
func separate(args []string) []string {
	for words := 1; words <= min(2, len(args)); words++ {
		name := strings.Join(args[:words], " ")
		if slices.ContainsFunc(verbs, func(v verb.Verb) bool { return v.Name == name }) {
			return slices.Insert(slices.Clone(args), words, "--")
		}
	}
	return args
}
