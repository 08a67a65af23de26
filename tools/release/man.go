package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing/fstest"
	"time"
)

// abouts are the one-line descriptions of the programs. The descriptions of verbs come from
// the program's help.
var abouts = map[string]string{
	"zkrecipes":        "locks, elections, queues and other ZooKeeper recipes on the command line",
	"zkrecipes-plugin": "serves the ZooKeeper recipes to the host application that launches it",
	"zkbench":          "measures ZooKeeper's locks and elections, and plans their capacity",
}

// page is a man page of section 1, made from the long help that a program prints.
type page struct {
	words    []string // the program and its verb
	about    string
	help     string
	children []verbLine
}

// verbLine is a line in a program's list of verbs.
type verbLine struct{ verb, about string }

func (p page) name() string { return strings.Join(p.words, "-") }

// manPages returns the man pages of the programs in dir, by file name: one for each program and
// each of its verbs. The programs must run on this machine.
func (t target) manPages(ctx context.Context, dir string) (fstest.MapFS, error) {
	files := fstest.MapFS{}
	for _, program := range programs {
		if err := t.addPages(ctx, files, dir, page{words: []string{program}, about: abouts[program]}); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// addPages adds a page and the pages of the verbs that its help lists.
func (t target) addPages(ctx context.Context, files fstest.MapFS, dir string, p page) error {
	args := append([]string{"help"}, p.words[1:]...)
	if p.words[0] == "zkrecipes-plugin" { // the plugin has no verbs
		args = []string{"-h"}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, p.words[0]), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("help of %s: %w: %s", strings.Join(p.words, " "), err, out)
	}
	p.help = strings.TrimSpace(string(out))
	p.children = listed(p.help)
	for _, c := range p.children {
		words := append(p.words[:len(p.words):len(p.words)], c.verb)
		if err := t.addPages(ctx, files, dir, page{words: words, about: c.about}); err != nil {
			return err
		}
	}
	files[p.name()+".1"] = &fstest.MapFile{Mode: 0o644, Data: []byte(p.roff(t.version, t.time))}
	return nil
}

var (
	verbList = regexp.MustCompile(`(?m)^(?:Available commands are|Subcommands|Verbs):\n+((?:(?:    |\t)\S.*\n?)+)`)
	verbOf   = regexp.MustCompile(`(?m)^(?:    |\t)([a-z][a-z-]*) {2,}(.+)$`)
)

// listed returns the verbs that a help lists.
func listed(help string) (verbs []verbLine) {
	if list := verbList.FindStringSubmatch(help); list != nil {
		for _, line := range verbOf.FindAllStringSubmatch(list[1], -1) {
			verbs = append(verbs, verbLine{line[1], line[2]})
		}
	}
	return verbs
}

var (
	usageLine = regexp.MustCompile(`^[Uu]sage: (.*)\n*`)
	heading   = regexp.MustCompile(`^([A-Z][A-Za-z ]*):$`)
	flagLine  = regexp.MustCompile(`^  (-\S+)([^\t]*)\t?(.*)$`)
)

// roff returns the page in the macros of man(7). Help is text in paragraphs. Lines that end
// with a colon are headings, indented lines are kept as they are, and flags are as package
// flag prints them.
func (p page) roff(version string, when time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 %s \"zkrecipes %s\"\n", strings.ToUpper(escape(p.name())), when.Format(time.DateOnly), escape(strings.TrimPrefix(version, "v")))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(p.name()), escape(p.about))
	text := p.help
	if usage := usageLine.FindStringSubmatch(text); usage != nil {
		fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", escape(usage[1]))
		text = text[len(usage[0]):]
	}
	w := roffWriter{b: &b}
	if first, _, _ := strings.Cut(text, "\n"); !heading.MatchString(first) {
		w.section("DESCRIPTION")
	}
	for line := range strings.SplitSeq(text, "\n") {
		w.line(line)
	}
	w.literal(false)
	b.WriteString(".SH SEE ALSO\n" + p.seeAlso() + "\n")
	return b.String()
}

// seeAlso names the pages above and below this one.
func (p page) seeAlso() string {
	var others []string
	switch {
	case len(p.words) > 1:
		others = append(others, strings.Join(p.words[:len(p.words)-1], "-"))
	default:
		for _, program := range programs {
			if program != p.words[0] {
				others = append(others, program)
			}
		}
	}
	for _, c := range p.children {
		others = append(others, p.name()+"-"+c.verb)
	}
	for i, name := range others {
		others[i] = "\\fB" + escape(name) + "\\fR(1)"
	}
	return strings.Join(others, ",\n")
}

// roffWriter writes the lines of a help.
type roffWriter struct {
	b         *strings.Builder
	open      bool // in lines that are kept as they are
	paragraph bool // the last line was empty
	pending   bool // a section has no text yet: man(7) begins its first paragraph
	blank     int  // empty lines in kept lines that were not written yet
	flag      bool // in the text of a flag
}

func (w *roffWriter) line(line string) {
	flag := flagLine.FindStringSubmatch(line)
	switch title := heading.FindStringSubmatch(line); {
	case strings.TrimSpace(line) == "":
		w.blank++
		w.paragraph = true
		return
	case title != nil:
		w.section(strings.ToUpper(strings.TrimSuffix(title[1], " are")))
		return
	case flag != nil:
		w.literal(false)
		fmt.Fprintf(w.b, ".TP\n\\fB%s\\fI%s\\fR\n", escape(flag[1]), escape(flag[2]))
		if flag[3] != "" { // the flag has one letter and no value
			w.text(flag[3])
		}
		w.flag = true
	case w.flag && strings.HasPrefix(line, "    \t"):
		w.text(strings.TrimSpace(line))
	case strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t"):
		w.literal(true)
		for ; w.blank > 0; w.blank-- {
			w.b.WriteString("\n")
		}
		line, tab := strings.CutPrefix(line, "\t")
		if !tab {
			line = strings.TrimPrefix(line, "    ")
		}
		w.text(strings.ReplaceAll(line, "\t", "    "))
	default:
		w.literal(false)
		if strings.HasPrefix(line, "Exit code: ") {
			w.section("EXIT STATUS")
		}
		if w.paragraph && !w.pending {
			w.b.WriteString(".PP\n")
		}
		w.text(line)
		w.flag = false
	}
	w.blank, w.paragraph, w.pending = 0, false, false
}

func (w *roffWriter) section(title string) {
	w.literal(false)
	fmt.Fprintf(w.b, ".SH %s\n", title)
	w.blank, w.flag, w.pending = 0, false, true
}

// literal begins or ends lines that are kept as they are.
func (w *roffWriter) literal(on bool) {
	switch {
	case on && !w.open:
		if !w.pending {
			w.b.WriteString(".PP\n")
		}
		w.b.WriteString(".RS 4\n.nf\n")
		w.blank = 0
	case !on && w.open:
		w.b.WriteString(".fi\n.RE\n")
		w.paragraph = true
	}
	w.open = on
}

func (w *roffWriter) text(line string) {
	line = escape(line)
	if strings.HasPrefix(line, ".") { // such a line would be a request of roff
		line = `\&` + line
	}
	w.b.WriteString(line + "\n")
}

// roffSpecial are characters that groff changes or interprets.
var roffSpecial = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

func escape(text string) string {
	var b strings.Builder
	for _, r := range roffSpecial.Replace(text) {
		if r > 126 {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
