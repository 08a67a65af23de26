package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
)

// TestHelpOfEveryVerb: the help of each verb has the same parts in the same order: two
// sentences, two examples, the rules, and the flags.
func TestHelpOfEveryVerb(t *testing.T) {
	shape := regexp.MustCompile(`(?s)^Usage: zkrecipes (.*?)\n\n(.*?)\n\nExamples:\n\n(.*?)\n\n(.*)\n\nFlags:\n\n(.*)$`)
	for name, verb := range everyVerb() {
		help := verb.Help()
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
			if !strings.Contains(flags, flag) {
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

func TestEveryVerbHasATimeout(t *testing.T) {
	for name, verb := range everyVerb() {
		for _, flag := range []string{"timeout", "connect-timeout"} {
			if verb.FlagSet().Lookup(flag) == nil {
				t.Errorf("%s has no -%s", name, flag)
			}
		}
	}
}

// TestRetiredWords: no help uses a word that has several meanings, or none in this field.
func TestRetiredWords(t *testing.T) {
	retired := strings.Fields("crowd crowds mate spot claimant appendage heed lets loan standing presence family vain past farewell lifeline fate overheard apart contest")
	for name, verb := range everyVerb() {
		for word := range strings.FieldsFuncSeq(strings.ToLower(verb.Help()+" "+verb.Synopsis()), func(r rune) bool { return r < 'a' || r > 'z' }) {
			if slices.Contains(retired, word) {
				t.Errorf("the help of %s says %q", name, word)
			}
		}
	}
}
