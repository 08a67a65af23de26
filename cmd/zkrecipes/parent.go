package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/cli"
)

// parent is the first word of verbs of two words, as queue is of put and take. It
// does nothing itself; its -h lists them.
type parent struct {
	tool           *tool
	name, synopsis string
	verbs          []string
}

// addParents adds the first words of the verbs of two words.
func (t *tool) addParents(commands map[string]cli.CommandFactory, synopses map[string]string) {
	for name, synopsis := range synopses {
		p := &parent{tool: t, name: name, synopsis: synopsis}
		for verb := range commands {
			if second, ok := strings.CutPrefix(verb, name+" "); ok {
				p.verbs = append(p.verbs, second)
			}
		}
		slices.Sort(p.verbs)
		commands[name] = func() (cli.Command, error) { return p, nil }
	}
}

// Run implements cli.Command.
func (p *parent) Run(args []string) int {
	what := "is missing"
	if len(args) > 0 {
		what = fmt.Sprintf("%q is unknown%s", args[0], meant(args[0], p.verbs))
	}
	out := &output{stdout: p.tool.stdout, stderr: p.tool.stderr}
	out.fail(usage("%s: the verb %s; one of %s; see zkrecipes %s -h", p.name, what, strings.Join(p.verbs, ", "), p.name), exitUsage)
	return exitUsage
}

// Help implements cli.Command. The list of verbs follows it.
func (p *parent) Help() string {
	return fmt.Sprintf("Usage: zkrecipes %s VERB [flags] ...\n\n%s. zkrecipes %s VERB -h tells about one of them.", p.name, p.synopsis, p.name)
}

// Synopsis implements cli.Command.
func (p *parent) Synopsis() string { return p.synopsis }
