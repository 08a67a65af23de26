// Package helptext makes the two helps of a verb of zkrecipes or zkbench: Short for -h, and
// Long for "help VERB" and the man pages.
//
// Both come from one text, in paragraphs: the usage, two sentences, "Examples:" with the
// examples, the rules, and the exit codes. Tests of the two programs fix this shape.
package helptext

import (
	"flag"
	"fmt"
	"regexp"
	"strings"

	"github.com/mitchellh/go-wordwrap"
)

// A short help fits on a screen of 24 lines, with a line for the prompt.
const (
	Lines   = 23
	Columns = 80
)

// mark begins the usage of a flag that Short shows. Package flag has no other place for it.
const mark = "\x00"

// Common returns the usage of a flag that most people need. It is used where the flag is
// declared. Short shows the usage up to the first comma, colon or semicolon.
func Common(usage string) string { return mark + usage }

// IsCommon reports whether the flag was declared with Common.
func IsCommon(f *flag.Flag) bool { return strings.HasPrefix(f.Usage, mark) }

// Long returns the text and all flags. It sets the output of flags.
func Long(text string, flags *flag.FlagSet) string {
	b := &strings.Builder{}
	flags.SetOutput(b)
	flags.PrintDefaults()
	return strings.TrimSpace(text) + "\n\nFlags:\n\n" + strings.TrimRight(strings.ReplaceAll(b.String(), mark, ""), "\n")
}

// Short returns what fits on a screen: the text without its rules and with fewer examples,
// the common flags, and where the rest is.
func Short(program, verb, text string, flags *flag.FlagSet) string {
	usage, rest, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	about, _, _ := strings.Cut(rest, "\n\n")
	return strings.Join([]string{
		usage,
		wrap(about),
		"Examples:\n" + examples(program, text),
		"Common flags:\n" + commonFlags(flags),
		exitCodes(text),
		fmt.Sprintf("More: %[1]s help %[2]s, man %[1]s-%[3]s", program, verb, strings.ReplaceAll(verb, " ", "-")),
	}, "\n\n")
}

func wrap(text string) string {
	return wordwrap.WrapString(strings.Join(strings.Fields(text), " "), Columns)
}

// examples returns the first two commands of the program below "Examples:".
func examples(program, text string) string {
	_, text, _ = strings.Cut(text, "\n\nExamples:\n")
	found := regexp.MustCompile(`(?m)^\s+(`+program+`\b.*)$`).FindAllStringSubmatch(text, 2)
	var lines []string
	for _, f := range found {
		lines = append(lines, "    "+f[1])
	}
	return strings.Join(lines, "\n")
}

// commonFlags returns a line for each flag that was declared with Common.
func commonFlags(flags *flag.FlagSet) string {
	var names, usages []string
	width := 0
	flags.VisitAll(func(f *flag.Flag) {
		if !IsCommon(f) {
			return
		}
		value, usage := flag.UnquoteUsage(f)
		name := strings.TrimSpace("-" + f.Name + " " + value)
		width = max(width, len(name))
		names, usages = append(names, name), append(usages, clause(strings.TrimPrefix(usage, mark)))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("  %-*s  %s", width, name, usages[i])
	}
	return strings.Join(names, "\n")
}

// clause returns the beginning of a text up to its first punctuation mark.
func clause(text string) string {
	if end := punctuation.FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	return strings.Join(strings.Fields(text), " ")
}

var (
	punctuation = regexp.MustCompile(`[,:;]\s|\s\(`)

	codes = regexp.MustCompile(`(?ms)^Exit codes?:.*`)
	code  = regexp.MustCompile(`(?m)^(?:    |\t)([0-9]\S*) +(.*)$`)
)

// exitCodes returns the exit codes as one paragraph.
func exitCodes(text string) string {
	section := codes.FindString(text)
	about, _, _ := strings.Cut(section, "\n\n")
	var each []string
	for _, c := range code.FindAllStringSubmatch(section, -1) {
		each = append(each, c[1]+" "+clause(c[2]))
	}
	return wrap(about + " " + strings.Join(each, ", ") + ".")
}
