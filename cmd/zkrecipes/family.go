package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/cli"
)

// family is a verb that has verbs of its own, as queue has put and take. It does
// nothing itself; its -h lists them.
type family struct {
	tool           *tool
	name, synopsis string
	verbs          []string
}

// addFamilies adds the families of the verbs of two words.
func (t *tool) addFamilies(commands map[string]cli.CommandFactory, synopses map[string]string) {
	for name, synopsis := range synopses {
		f := &family{tool: t, name: name, synopsis: synopsis}
		for verb := range commands {
			if second, ok := strings.CutPrefix(verb, name+" "); ok {
				f.verbs = append(f.verbs, second)
			}
		}
		slices.Sort(f.verbs)
		commands[name] = func() (cli.Command, error) { return f, nil }
	}
}

// Run implements cli.Command.
func (f *family) Run(args []string) int {
	what := "is missing"
	if len(args) > 0 {
		what = fmt.Sprintf("%q is unknown", args[0])
	}
	out := &output{stdout: f.tool.stdout, stderr: f.tool.stderr}
	out.fail(usage("%s: the verb %s; one of %s; see zkrecipes %s -h", f.name, what, strings.Join(f.verbs, ", "), f.name), exitUsage)
	return exitUsage
}

// Help implements cli.Command. The list of verbs follows it.
func (f *family) Help() string {
	return fmt.Sprintf("Usage: zkrecipes %s VERB [flags] ...\n\n%s. zkrecipes %s VERB -h tells about one of them.", f.name, f.synopsis, f.name)
}

// Synopsis implements cli.Command.
func (f *family) Synopsis() string { return f.synopsis }
