package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/posener/complete"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/printable"
)

var completion = verb.Verb{
	Name: "completion", Usage: "[flags] bash|zsh|fish", New: verb.New[completionVerb],
	Uses:     []string{"format"},
	Synopsis: "Print a script that completes verbs, flags and paths",
	Help: `Prints a script with which bash, zsh or fish completes verbs, flags and paths. The
script runs the zkrecipes that is in PATH.

    zkrecipes completion bash
    zkrecipes completion fish

A package installs it where the shell reads it: /etc/bash_completion.d/zkrecipes for bash,
_zkrecipes in a directory of fpath for zsh, vendor_completions.d/zkrecipes.fish for fish.
zkrecipes -autocomplete-install changes the files of your own shells instead.

Exit code: 0 if the script was written. Otherwise:

    1    stdout cannot be written
    2    wrong usage`,
}

type completionVerb struct{ shell string }

// completions contains the script for each shell. The script calls "zkrecipes -complete", and
// only that answers completions: a variable such as COMP_LINE, which a command inherits from
// another program's completion, does not keep zkrecipes from its work.
//
// Bash inserts a completion as it is, so zkrecipes quotes it. zsh and fish quote by themselves.
var completions = map[string]string{
	"bash": `_zkrecipes() {
    local found
    COMPREPLY=()
    while IFS= read -r found; do
        COMPREPLY+=("$found")
    done < <(zkrecipes -complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
}
complete -F _zkrecipes zkrecipes
`,
	"zsh": `#compdef zkrecipes
_zkrecipes() {
    local -a found
    found=(${(f)"$(zkrecipes -complete zsh "${(j: :)words[1,CURRENT]}" 2>/dev/null)"})
    compadd -- $found
}
if [[ "${funcstack[1]}" = _zkrecipes ]]; then
    _zkrecipes "$@"
else
    compdef _zkrecipes zkrecipes
fi
`,
	"fish": `function __complete_zkrecipes
    zkrecipes -complete fish (commandline -cp) 2>/dev/null
end
complete -f -c zkrecipes -a "(__complete_zkrecipes)"
`,
}

func (v *completionVerb) Flags(*flag.FlagSet) {}

func (v *completionVerb) Arguments(args []string) error {
	if len(args) != 1 || completions[args[0]] == "" {
		return fmt.Errorf("give one shell: %s", strings.Join(slices.Sorted(maps.Keys(completions)), ", "))
	}
	v.shell = args[0]
	return nil
}

func (v *completionVerb) Run(_ context.Context, t *verb.Tool) error {
	script := completions[v.shell]
	return t.Result(verb.Object{"shell", v.shell, "script", script}, func(w io.Writer) { _, _ = io.WriteString(w, script) })
}

// installation is a file of a shell, with the lines that complete zkrecipes there.
type installation struct {
	file  string
	lines []string
	whole bool // the file contains only these lines
}

func installations(home, self string) (all []installation) {
	there := func(name string) bool { _, err := os.Stat(filepath.Join(home, name)); return err == nil }
	for _, rc := range []string{".bashrc", ".bash_profile", ".bash_login", ".profile"} {
		if there(rc) {
			all = append(all, installation{file: filepath.Join(home, rc), lines: []string{sourced(self, "bash")}})
			break
		}
	}
	if there(".zshrc") {
		all = append(all, installation{file: filepath.Join(home, ".zshrc"), lines: []string{
			"autoload -Uz compinit && compinit", sourced(self, "zsh"),
		}})
	}
	fish := filepath.Join(home, ".config", "fish")
	if xdg := os.Getenv("XDG_CONFIG_HOME"); xdg != "" {
		fish = filepath.Join(xdg, "fish")
	}
	if info, err := os.Stat(fish); err == nil && info.IsDir() {
		all = append(all, installation{
			file: filepath.Join(fish, "completions", "zkrecipes.fish"), lines: strings.Split(strings.TrimSuffix(completions["fish"], "\n"), "\n"), whole: true,
		})
	}
	return all
}

// sourced returns the line that reads the script of the shell, if the program still exists.
func sourced(self, shell string) string {
	self = quoted(self)
	return fmt.Sprintf(`[ -x %s ] && eval "$(%[1]s completion %s)"`, self, shell)
}

func installCompletion(t *verb.Tool, undo bool) int {
	home, err := os.UserHomeDir()
	if err != nil {
		return misused(t, "%w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return misused(t, "%w", err)
	}
	all := installations(home, self)
	if len(all) == 0 {
		return misused(t, "%s has no file of bash, zsh or fish, such as .bashrc; create it, or use the script of zkrecipes completion", home)
	}
	for _, i := range all {
		done, err := i.apply(undo)
		if err != nil {
			t.Fail(err, exit.Failed)
			return exit.Failed
		}
		verb.Row(t.Stdout, "%s %s", done, i.file)
	}
	return exit.OK
}

// apply adds the missing lines to the file. With undo it removes the last line, or the file
// if it contains only the lines. It returns what it did. After an error the file is as it was.
func (i installation) apply(undo bool) (done string, err error) {
	content, err := os.ReadFile(i.file)
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	if len(content) == 0 {
		lines = nil
	}
	last := i.lines[len(i.lines)-1]
	has := slices.Contains(lines, last)
	switch {
	case has != undo:
		return "nothing to do in", nil
	case undo && i.whole:
		return "removed", os.Remove(i.file)
	case undo:
		done, lines = "removed a line from", slices.DeleteFunc(lines, func(l string) bool { return l == last })
	default:
		done = "wrote to"
		for _, l := range i.lines {
			if i.whole || !slices.Contains(lines, l) {
				lines = append(lines, l)
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(i.file), 0o755); err != nil {
		return "", err
	}
	return done, verb.Replace(i.file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

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
