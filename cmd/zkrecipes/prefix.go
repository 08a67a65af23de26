package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/cli"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
)

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
	return fmt.Sprintf("Usage: zkrecipes %s VERB [flags] ...\n\n%s. zkrecipes %s VERB -h explains a verb.", p.name, p.synopsis, p.name)
}

// Synopsis implements cli.Command.
func (p *prefix) Synopsis() string { return p.synopsis }

// misused reports a mistake in the command line and returns its exit code.
func misused(t *verb.Tool, format string, args ...any) int {
	t.Fail(fmt.Errorf(format, args...), exit.Misuse)
	return exit.Misuse
}

// unknown reports that there is no verb of this name.
func unknown(t *verb.Tool, name string, commands map[string]cli.CommandFactory) int {
	first := slices.DeleteFunc(slices.Sorted(maps.Keys(commands)), func(verb string) bool { return strings.Contains(verb, " ") })
	return misused(t, "the verb %q is unknown%s; one of %s; see zkrecipes -h", name, suggestion(name, first), strings.Join(first, ", "))
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
