package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

var update = flag.Bool("update", false, "write what the commands of the README print into the README")

var readmeFile = filepath.Join("..", "..", "README.md")

// TestConsoleOfTheReadme runs the commands of the README's console blocks, one
// after the other on one server, and compares what they print, but for numbers,
// times, session ids and the width of columns.
func TestConsoleOfTheReadme(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a Unix shell")
	}
	readme, err := os.ReadFile(readmeFile)
	if err != nil {
		t.Fatal(err)
	}
	server, err := zkserver.Listen(zkserver.Config{TickTime: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	home := t.TempDir()
	run := func(command string) string {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Dir = home
		cmd.Env = append(os.Environ(), "HOME="+home, "ZKRECIPES_SERVERS="+server.Addr(), "ZKRECIPES_LOG_LEVEL=error", "GORACE="+quickExit)
		out, _ := cmd.CombinedOutput() // exit codes are shown by the commands
		if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
			out = append(out, '\n') // as a terminal gets
		}
		return string(out)
	}
	commands := 0
	console := regexp.MustCompile("(?s)```console\n(.*?)```")
	now := console.ReplaceAllFunc(readme, func(block []byte) []byte {
		var printed bytes.Buffer
		for line := range strings.Lines(string(console.FindSubmatch(block)[1])) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				commands++
				printed.WriteString(line + run(command))
			}
		}
		if shown, prints := regular(console.FindSubmatch(block)[1]), regular(printed.Bytes()); shown != prints && !*update {
			t.Errorf("the README shows\n%s\nthe commands print\n%s", shown, prints)
		}
		return slices.Concat([]byte("```console\n"), printed.Bytes(), []byte("```"))
	})
	if commands == 0 {
		t.Error("the README shows no command")
	}
	if *update {
		if err := os.WriteFile(readmeFile, now, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// regular replaces what differs from run to run. Exit codes do not.
func regular(printed []byte) string {
	var text strings.Builder
	for line := range strings.Lines(string(printed)) {
		if !strings.HasPrefix(line, "exit code") && !strings.HasPrefix(line, "$ ") {
			for _, r := range different {
				line = r.what.ReplaceAllString(line, r.with)
			}
		}
		text.WriteString(line)
	}
	return text.String()
}

var different = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`0x[0-9a-f]+`), "SESSION"},
	{regexp.MustCompile(`_c_[0-9a-f-]{36}`), "_c_GUID"},
	{regexp.MustCompile(`\b\d+\b`), "N"},
	{regexp.MustCompile(` +`), " "},
}

// TestTableOfTheReadme: it has every verb, and no other. A cell names a verb as
// `queue put PATH`, and others of the family by their second word.
func TestTableOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile(readmeFile)
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(readme), "\n| verb |")
	if !found {
		t.Fatal("the README has no table of verbs")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	verbs := (&tool{}).verbs()
	var families []string
	for verb := range verbs {
		if first, _, two := strings.Cut(verb, " "); two {
			families = append(families, first)
		}
	}
	var shown []string
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		family := ""
		for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(cell, -1) {
			words := strings.Fields(strings.Trim(code, "`"))
			switch {
			case family != "":
				shown = append(shown, family+" "+words[0])
			case slices.Contains(families, words[0]):
				family = words[0]
				shown = append(shown, family+" "+words[1])
			default:
				shown = append(shown, words[0])
			}
		}
	}
	for verb := range verbs {
		if !slices.Contains(families, verb) && !slices.Contains(shown, verb) {
			t.Errorf("the table has no %q", verb)
		}
	}
	for _, verb := range shown {
		if _, ok := verbs[verb]; !ok {
			t.Errorf("there is no verb %q, which the table shows", verb)
		}
	}
}
