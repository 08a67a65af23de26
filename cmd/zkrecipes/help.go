package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/cli"
	"github.com/mitchellh/go-wordwrap"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/data"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/look"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/run"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
)

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

// firstWords lists the verbs by their first words.
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

// isHelp reports whether the word is a flag that asks for help.
func isHelp(word string) bool { return word == "-h" || word == "-help" || word == "--help" }
