package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/cli"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
)

// family is the first word of verbs of two words, as queue is of put and take. It
// does nothing itself; its -h lists them.
type family struct {
	tool           *verb.Tool
	name, synopsis string
	verbs          []string
}

// Run implements cli.Command.
func (f *family) Run(args []string) int {
	what := "is missing"
	if len(args) > 0 {
		what = fmt.Sprintf("%q is unknown%s", args[0], meant(args[0], f.verbs))
	}
	return misused(f.tool, "%s: the verb %s; one of %s; see zkrecipes %s -h", f.name, what, strings.Join(f.verbs, ", "), f.name)
}

// Help implements cli.Command. The list of verbs follows it.
func (f *family) Help() string {
	return fmt.Sprintf("Usage: zkrecipes %s VERB [flags] ...\n\n%s. zkrecipes %s VERB -h tells about one of them.", f.name, f.synopsis, f.name)
}

// Synopsis implements cli.Command.
func (f *family) Synopsis() string { return f.synopsis }

// misused says what is wrong with the command line.
func misused(t *verb.Tool, format string, args ...any) int {
	t.Fail(fmt.Errorf(format, args...), exit.Misuse)
	return exit.Misuse
}

// unknown says that there is no such verb.
func unknown(t *verb.Tool, name string, commands map[string]cli.CommandFactory) int {
	first := slices.DeleteFunc(slices.Sorted(maps.Keys(commands)), func(verb string) bool { return strings.Contains(verb, " ") })
	return misused(t, "the verb %q is unknown%s; one of %s; see zkrecipes -h", name, meant(name, first), strings.Join(first, ", "))
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
