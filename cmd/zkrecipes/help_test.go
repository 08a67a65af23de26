package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// TestHelpOfEveryVerb: the help of each verb has the same parts in the same order: two
// sentences, two examples, the rules, and the flags.
func TestHelpOfEveryVerb(t *testing.T) {
	shape := regexp.MustCompile(`(?s)^Usage: zkrecipes (.*?)\n\n(.*?)\n\nExamples:\n\n(.*?)\n\n(.*)\n\nFlags:\n\n(.*)$`)
	for name, verb := range everyVerb() {
		help := verb.LongHelp()
		part := shape.FindStringSubmatch(help)
		if part == nil {
			t.Errorf("the help of %s has another shape:\n%s", name, help)
			continue
		}
		usage, about, examples, rules, flags := part[1], part[2], part[3], part[4], part[5]
		if !strings.HasPrefix(usage, name+" ") {
			t.Errorf("the usage of %s is %q", name, usage)
		}
		if sentences := regexp.MustCompile(`[.!?](\s|$)`).FindAllString(about, -1); len(sentences) != 2 || !strings.HasSuffix(about, ".") {
			t.Errorf("the help of %s begins with %d sentences:\n%s", name, len(sentences), about)
		}
		if lines := strings.Split(examples, "\n"); len(lines) != 2 || lines[0] == lines[1] {
			t.Errorf("%s has these examples:\n%s", name, examples)
		} else {
			tryExample(t, name, lines[0])
			tryExample(t, name, lines[1])
		}
		if last := rules[max(0, strings.LastIndex(rules, "\n\n")):]; !strings.Contains(rules, "Exit code: ") || !strings.Contains(last, "    2    ") && !strings.Contains(last, "    2  ") {
			t.Errorf("the rules of %s do not end with the exit codes:\n%s", name, rules)
		}
		for _, flag := range []string{"  -format form\n", "  -config file\n"} {
			if verb.FlagSet().Lookup(strings.Fields(flag)[0][1:]) != nil && !strings.Contains(flags, flag) {
				t.Errorf("the flags of %s have no %q:\n%s", name, flag, flags)
			}
		}
		for line := range strings.Lines(help) {
			if len(line) > 100 {
				t.Errorf("the help of %s has a long line: %s", name, line)
			}
		}
		if s := verb.Synopsis(); s == "" || len(s) > 60 || strings.HasSuffix(s, ".") {
			t.Errorf("the synopsis of %s is %q", name, s)
		}
	}
}

// TestShortHelpFitsOnAScreen: -h of each verb and prefix, and of zkrecipes itself, has the
// examples, the common flags, the exit codes, and where the rest is.
func TestShortHelpFitsOnAScreen(t *testing.T) {
	texts := map[string]string{"zkrecipes": helpOf(t, "-h")}
	for name := range prefixes {
		texts[name] = helpOf(t, name, "-h")
	}
	shape := regexp.MustCompile(`(?s)^Usage: zkrecipes (.*?) [^\n]*\n\n(.*?)\n\nExamples:\n(.*?)\n\nCommon flags:\n(.*)\n\nExit code: (.*)\n\nMore: ([^\n]*)\n$`)
	for name, verb := range everyVerb() {
		help := helpOf(t, append(strings.Fields(name), "-h")...)
		texts[name] = help
		part := shape.FindStringSubmatch(help)
		if part == nil {
			t.Errorf("the help of %s has another shape:\n%s", name, help)
			continue
		}
		examples, flags, codes, more := part[3], part[4], part[5], part[6]
		if strings.Count(examples, "zkrecipes "+name) != 2 {
			t.Errorf("%s -h has these examples:\n%s", name, examples)
		}
		for _, flag := range []string{"-servers addresses", "-format form"} {
			if used := verb.FlagSet().Lookup(strings.Fields(flag)[0][1:]) != nil; used != strings.Contains(flags, flag) {
				t.Errorf("%s -h and the flag %s: it is defined: %v", name, flag, used)
			}
		}
		_, list, _ := strings.Cut(verb.Verb.Help, "Exit code: ")
		for _, line := range regexp.MustCompile(`(?m)^    (\d\S*) `).FindAllStringSubmatch(list, -1) {
			if !regexp.MustCompile(`(^|\s)` + regexp.QuoteMeta(line[1]) + `\s`).MatchString(codes) {
				t.Errorf("%s -h lacks exit code %s: %s", name, line[1], codes)
			}
		}
		if want := "zkrecipes help " + name + ", man zkrecipes-" + strings.ReplaceAll(name, " ", "-"); more != want {
			t.Errorf("%s -h ends with %q; want %q", name, more, want)
		}
		if long := helpOf(t, append([]string{"help"}, strings.Fields(name)...)...); long != verb.LongHelp()+"\n" {
			t.Errorf("zkrecipes help %s prints\n%s", name, long)
		}
	}
	for name, text := range texts {
		if n := strings.Count(text, "\n"); n > helptext.Lines {
			t.Errorf("-h of %s has %d lines; a screen has room for %d:\n%s", name, n, helptext.Lines, text)
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helptext.Columns {
				t.Errorf("-h of %s has a line of %d columns: %s", name, n, line)
			}
		}
	}
}

// TestHelpRunsNothing: help takes a verb, and does not run what follows the verb.
func TestHelpRunsNothing(t *testing.T) {
	for _, args := range [][]string{{"lock", "/l", "--", "true"}, {"queue", "put", "/q", "x"}, {"queue", "pop"}, {"lokc"}, {""}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			code, stdout, stderr := callTool(append([]string{"help"}, args...)...)
			if code != exit.Misuse || stdout != "" || stderr == "" {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

// callTool calls the tool, which writes to buffers.
func callTool(args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	code = call(verb.NewTool(&out, &errs), args)
	return code, out.String(), errs.String()
}

// helpOf returns the help that these arguments print.
func helpOf(t *testing.T, args ...string) string {
	code, stdout, stderr := callTool(args...)
	if code != exit.OK || stderr != "" {
		t.Errorf("%q: exit code %d, stderr %q", args, code, stderr)
	}
	return stdout
}

// tryExample parses an example as the tool parses its command line.
func tryExample(t *testing.T, name, line string) {
	words := shellWords(line)
	if !strings.HasPrefix(line, "    zkrecipes ") || !strings.HasPrefix(strings.Join(words[1:], " ")+" ", name+" ") {
		t.Errorf("an example of %s is %q", name, line)
		return
	}
	verb := everyVerb()[name]
	flags := verb.FlagSet()
	err := flags.Parse(words[1+len(strings.Fields(name)):])
	if err == nil {
		err = verb.Arguments(flags.Args())
	}
	if err != nil {
		t.Errorf("the example %q of %s: %v", line, name, err)
	}
}

// shellWords splits a line as a shell does. The only quotes are '.
func shellWords(line string) []string {
	words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)
	for i, w := range words {
		words[i] = strings.Trim(w, "'")
	}
	return words
}

// everyVerb returns all verbs, without prefixes, by name.
func everyVerb() map[string]*verb.Command {
	all := map[string]*verb.Command{}
	for _, v := range verbs {
		all[v.Name] = &verb.Command{Tool: &verb.Tool{}, Verb: v, Action: v.New()}
	}
	return all
}

// TestVerbsHaveTheSharedFlagsThatTheyUse: a verb refuses the shared flags that it would ignore.
func TestVerbsHaveTheSharedFlagsThatTheyUse(t *testing.T) {
	shared := []string{"chroot", "config", "connect-timeout", "format", "servers", "session-timeout", "timeout"}
	some := map[string][]string{
		"audit":          {"format", "timeout"},
		"completion":     {"format"},
		"doctor":         {"chroot", "config", "format", "servers", "session-timeout", "timeout"},
		"init":           {"chroot", "config", "format", "servers"},
		"upgrade-plugin": {"format", "timeout"},
	}
	for name, verb := range everyVerb() {
		want, ok := some[name]
		if !ok {
			want = shared
		}
		var has []string
		for _, flag := range shared {
			if verb.FlagSet().Lookup(flag) != nil {
				has = append(has, flag)
			}
		}
		if !slices.Equal(has, want) {
			t.Errorf("%s has the shared flags %q; want %q", name, has, want)
		}
	}
}

// TestDocsListEveryVerb: the table in docs/tool.md contains exactly the verbs of the tool. A
// cell names one verb in full (`queue put PATH`), and others with the same prefix by their
// second word. Tests at the root of the module run the commands of that page.
func TestDocsListEveryVerb(t *testing.T) {
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "tool.md")))(t)
	_, table, found := strings.Cut(string(page), "\n| verb |")
	if !found {
		t.Fatal("the page has no table of verbs")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	verbs := everyVerb()
	var shown []string
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		prefix := ""
		for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(cell, -1) {
			words := strings.Fields(strings.Trim(code, "`"))
			switch {
			case prefix != "":
				shown = append(shown, prefix+" "+words[0])
			case prefixes[words[0]] != "":
				prefix = words[0]
				shown = append(shown, prefix+" "+words[1])
			default:
				shown = append(shown, words[0])
			}
		}
	}
	for verb := range verbs {
		if !slices.Contains(shown, verb) {
			t.Errorf("the table has no %q", verb)
		}
	}
	for _, verb := range shown {
		if _, ok := verbs[verb]; !ok {
			t.Errorf("there is no verb %q, which the table shows", verb)
		}
	}
}

// TestDocsCompareOnlyTestedFeatures: in the comparison of docs/tool.md, each feature of
// zkrecipes is a verb with flags, or a variable, and a script uses it.
func TestDocsCompareOnlyTestedFeatures(t *testing.T) {
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "tool.md")))(t)
	_, table, found := strings.Cut(string(page), "\n| what | flock | consul lock | etcdctl lock | zkrecipes |\n|---|---|---|---|---|\n")
	if !found {
		t.Fatal("the page has no comparison")
	}
	table, _, _ = strings.Cut(table+"\n", "\n\n")
	scripts := allScripts(t)
	verbs := everyVerb()
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 {
			t.Errorf("%d cells: %s", len(cells), line)
			continue
		}
		claims := regexp.MustCompile("`[^`]*`").FindAllString(cells[4], -1)
		if len(claims) == 0 && strings.TrimSpace(cells[4]) != "no" {
			t.Errorf("no verb, no flag: %s", line)
		}
		for _, claim := range claims {
			words := strings.Fields(strings.Trim(claim, "`"))
			if strings.HasPrefix(words[0], "ZKRECIPES_") {
				if !strings.Contains(scripts, "$"+words[0]) {
					t.Errorf("no script uses %s", claim)
				}
				continue
			}
			verb := verbs[words[0]]
			if verb == nil {
				t.Errorf("there is no verb %s", claim)
				continue
			}
			used := `(?m)zkrecipes ` + words[0] + ` .*`
			for _, name := range words[1:] {
				if verb.FlagSet().Lookup(strings.TrimPrefix(name, "-")) == nil {
					t.Errorf("there is no flag %s of %s", name, claim)
				}
				used += name + `\b.*`
			}
			if !regexp.MustCompile(used).MatchString(scripts) {
				t.Errorf("no script uses %s", claim)
			}
		}
	}
}

// allScripts returns the concatenated scripts of TestScripts.
func allScripts(t *testing.T) string {
	files, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all strings.Builder
	for _, file := range files {
		content := must.Get(os.ReadFile(file))(t)
		all.Write(content)
	}
	return all.String()
}
