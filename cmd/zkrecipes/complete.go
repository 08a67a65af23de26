package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/posener/complete"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/printable"
)

// answer prints completions, one a line. The arguments are the shell, the command line up to
// the cursor, and for bash the characters that begin a word for its completion.
func answer(t *verb.Tool, args []string) int {
	if len(args) < 2 || completions[args[0]] == "" {
		return misused(t, "give one shell (%s) and a line", strings.Join(slices.Sorted(maps.Keys(completions)), ", "))
	}
	line := typed(args[1], strings.Join(args[2:], ""))
	for _, option := range line.options(tree(t)) {
		if args[0] == "bash" {
			if option = option[line.begin:]; line.quoted && option != quoted(option) {
				continue // how to quote it depends on the open quote
			}
			option = quoted(option)
		}
		fmt.Fprintln(t.Stdout, option)
	}
	return exit.OK
}

// tree returns the completion of all verbs.
func tree(t *verb.Tool) complete.Command {
	root := complete.Command{Sub: complete.Commands{}, Flags: complete.Flags{}}
	for _, name := range []string{"-autocomplete-install", "-autocomplete-uninstall", "-version", "-h"} {
		root.Flags[name] = complete.PredictNothing
	}
	help := complete.Commands{}
	for name := range prefixes {
		root.Sub[name] = complete.Command{Sub: complete.Commands{}}
		help[name] = complete.Command{Sub: complete.Commands{}}
	}
	for _, v := range verbs {
		in, explained, last := root.Sub, help, v.Name
		if first, second, two := strings.Cut(v.Name, " "); two {
			in, explained, last = root.Sub[first].Sub, help[first].Sub, second
		}
		in[last] = (&verb.Command{Tool: t, Verb: v, Action: v.New()}).Completion()
		explained[last] = complete.Command{}
	}
	root.Sub["help"] = complete.Command{Sub: help}
	return root
}

// commandLine is a command line up to the cursor.
type commandLine struct {
	words  []string // without quotes; the last one is completed
	quoted bool     // the last word has a quote, so quoting its completion is not certain
	begin  int      // offset in the last word at which the word of bash begins
}

// typed splits a line as a shell does. It expands nothing.
func typed(line, breaks string) (l commandLine) {
	var word []byte
	began, in := false, byte(0) // in is the open quote
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && in != '\'':
			if i++; i < len(line) {
				word, began = append(word, line[i]), true
			} else {
				l.quoted = true
			}
		case in == 0 && (c == '\'' || c == '"'):
			in, began, l.quoted = c, true, true
		case in != 0 && c == in:
			in = 0
		case in == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if began {
				l.words = append(l.words, string(word))
			}
			word, began, l.quoted, l.begin = nil, false, false, 0
		default:
			word, began = append(word, c), true
			if in == 0 && strings.IndexByte(breaks, c) >= 0 {
				l.begin = len(word)
			}
		}
	}
	l.words = append(l.words, string(word))
	return l
}

// options returns the completions of the last word that can be shown and typed. Any client may
// have created the znode of that name, so a name with a line break, a control character or
// one that is not UTF-8 is left out.
func (l commandLine) options(c complete.Command) (all []string) {
	words := l.words[min(1, len(l.words)-1):] // without the program
	completed, last, flag := words[:len(words)-1], words[len(words)-1], ""
	if name, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(name, "-") {
		completed, last, flag = append(slices.Clone(completed), name), value, name+"="
	}
	a := complete.Args{All: append(slices.Clone(completed), last), Completed: completed, Last: last}
	if len(completed) > 0 {
		a.LastCompleted = completed[len(completed)-1]
	}
	for _, option := range c.Predict(a) {
		if strings.HasPrefix(option, last) && printable.Is(option) {
			all = append(all, flag+option)
		}
	}
	slices.Sort(all)
	return all
}

// plainCharacters need no quotes in any shell, and are no word breaks in bash.
const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,+%-"

// quoted returns a printable text as one word for bash and zsh. It escapes every ASCII
// character that is not known to be harmless.
func quoted(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < 0x80 && !strings.ContainsRune(plainCharacters, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
