package repository_test

import (
	"bytes"
	"errors"
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

var update = flag.Bool("update", false, "write what the commands of README.md and docs print into them")

// desk is the environment in which the commands of a page run: a home directory with the
// binaries in go/bin, a copy of testdata, and a server.
type desk struct {
	home, binaries, addr string
	caches               []string // of the go command, which would be below home
}

func newDesk(t *testing.T, binaries string) *desk {
	t.Helper()
	server, err := zkserver.Listen(zkserver.Config{TickTime: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	d := &desk{home: t.TempDir(), binaries: binaries, addr: server.Addr(), caches: goCaches(t)}
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{testdata: "testdata", binaries: "go/bin"} {
		to = filepath.Join(d.home, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// goCaches returns environment variables with the go command's caches of modules and builds.
// A new module cache in the test's directory would be read-only, and only root could delete
// it after the test.
func goCaches(t *testing.T) []string {
	t.Helper()
	names := []string{"GOMODCACHE", "GOCACHE"}
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"env"}, names...)...).Output()
	values := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(values) != len(names) {
		t.Fatalf("go env: %v\n%s", err, out)
	}
	return []string{names[0] + "=" + values[0], names[1] + "=" + values[1]}
}

// run runs a command and returns its output as a page shows it: the server listens on
// ZooKeeper's port, the user is called ann, and only ZKRECIPES_SERVERS is set.
func (d *desk) run(t *testing.T, command string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, "127.0.0.1:2181", d.addr))
	cmd.Dir = d.home
	bin := filepath.Join(d.home, "go", "bin")
	cmd.Env = append(os.Environ(), "HOME="+d.home, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"ZKRECIPES_SERVERS="+d.addr, "ZKRECIPES_LOG_LEVEL=error")
	cmd.Env = append(cmd.Env, d.caches...)
	out, err := cmd.CombinedOutput()
	if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n') // as a terminal would get it
	}
	shown := strings.NewReplacer(d.addr, "127.0.0.1:2181", d.binaries, "/home/ann/go/bin", d.home, "/home/ann", "ZKRECIPES_LOG_LEVEL ", "")
	return shown.Replace(string(out)), err
}

// binaries builds the binaries for the commands, into a directory that is deleted with the
// test.
func binaries(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a Unix shell")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir()) // the binaries print their resolved path
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", dir, "./cmd/...").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// TestDocs contains the tests that share the binaries.
func TestDocs(t *testing.T) {
	binaries := binaries(t)
	t.Run("commands", func(t *testing.T) { commandsOfTheDocs(t, binaries) })
	t.Run("verbs and flags", func(t *testing.T) { verbsAndFlagsOfTheDocs(t, binaries) })
}

// commandsOfTheDocs runs the blocks of each page in order, on one server. The commands of a
// console block must print what the block shows, except for what differs from run to run.
// Exit codes must be equal. An sh block must succeed.
func commandsOfTheDocs(t *testing.T, binaries string) {
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) {
			d := newDesk(t, binaries)
			content, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range blocks(t, page) {
				switch {
				case b.marker != "":
				case b.language == "sh":
					out, err := d.run(t, "set -e\n"+b.text)
					if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 4 && strings.Contains(b.text, "zkbench run") {
						err = nil // on a busy machine all trials run, but some are invalid
					}
					if err != nil {
						t.Errorf("%v: %v\n%s", b, err, out)
					}
				case b.language == "console":
					printed := d.console(t, b)
					if regular(b.text) == regular(printed) {
						continue
					}
					if !*update {
						t.Errorf("%v shows\n%s\nthe commands print\n%s", b, regular(b.text), regular(printed))
					}
					content = bytes.Replace(content, []byte("```console\n"+b.text+"```"), []byte("```console\n"+printed+"```"), 1)
				}
			}
			if *update {
				if err := os.WriteFile(page, content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// console runs the commands of a block: the lines that begin with a dollar, and the lines
// that a backslash joins to them.
func (d *desk) console(t *testing.T, b block) string {
	t.Helper()
	var printed strings.Builder
	command := ""
	for line := range strings.Lines(b.text) {
		switch first, ok := strings.CutPrefix(line, "$ "); {
		case ok:
			command = first
		case strings.HasSuffix(command, "\\\n"):
			command += line
		default:
			continue // a line that the last command printed
		}
		printed.WriteString(line)
		if !strings.HasSuffix(command, "\\\n") {
			out, _ := d.run(t, command) // exit codes are shown by the commands
			printed.WriteString(out)
		}
	}
	if command == "" {
		t.Errorf("%v shows no command", b)
	}
	return printed.String()
}

// regular replaces what differs from run to run. Exit codes do not differ, nor does output that is
// made from recorded results.
func regular(printed string) string {
	var text strings.Builder
	recorded := false
	for line := range strings.Lines(printed) {
		isCommand := strings.HasPrefix(line, "$ ")
		if isCommand {
			recorded = strings.Contains(line, " testdata/results/")
		}
		if !isCommand && !recorded && !strings.HasPrefix(line, "exit code") {
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
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "SHA-256"},
	{regexp.MustCompile(`-?\b[0-9.]+(ns|µs|ms|s)\b`), "TIME"},
	{regexp.MustCompile(`\bv?\d+\.\d+\.\d+[-+.0-9a-z]*`), "VERSION"},
	{regexp.MustCompile(`\b\d+\b`), "N"},
	{regexp.MustCompile(` +`), " "},
}

// verbsAndFlagsOfTheDocs checks that the verbs and flags of every command exist, even if the
// command is not run.
func verbsAndFlagsOfTheDocs(t *testing.T, binaries string) {
	help := map[string]string{} // by command and verb
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			switch b.language {
			case "sh", "console", "ini", "cron":
			default:
				continue
			}
			for _, use := range uses(b.text) {
				command := strings.Join(append([]string{use.tool}, use.verb...), " ")
				if _, known := help[command]; !known {
					out, _ := exec.CommandContext(t.Context(), filepath.Join(binaries, use.tool), append([]string{"help"}, use.verb...)...).CombinedOutput()
					help[command] = string(out)
				}
				if !strings.Contains(help[command], "Usage: "+command) && !(len(use.verb) == 0 && strings.Contains(help[command], "Usage:")) {
					t.Errorf("%v: there is no %s", b, command)
					continue
				}
				for _, flag := range use.flags {
					if !regexp.MustCompile(`(?m)^\s+-{1,2}`+flag+`\b`).MatchString(help[command]) && len(use.verb) > 0 {
						t.Errorf("%v: %s has no flag -%s", b, command, flag)
					}
				}
			}
		}
	}
}

// use is a call of one of our commands in a block.
type use struct {
	tool        string
	verb, flags []string
}

var (
	ours     = regexp.MustCompile(`(?:^|[\s/$("'])(zkrecipes|zkbench)((?:\s+[^|;&)>\n]+)?)`)
	isVerb   = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	aFlag    = regexp.MustCompile(`^-{1,2}([a-z][a-z0-9-]*)`)
	families = []string{"queue", "barrier", "counter", "group", "config", "latch", "names", "tx"}
)

// uses returns our commands in a script. It does not parse quotes. The flags of a command
// that ours starts come after --, which ends our flags. If that command is one of ours too,
// uses returns it as well.
func uses(script string) []use {
	var found []use
	script = strings.ReplaceAll(script, "\\\n", " ")
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for line != "" {
			at := ours.FindStringSubmatchIndex(line)
			if at == nil {
				break
			}
			u := use{tool: line[at[2]:at[3]]}
			words := strings.Fields(line[at[4]:at[5]])
			line = line[at[3]:]
			words, u.verb = verb(words)
			for _, w := range words {
				if w == "--" {
					break
				}
				if name := aFlag.FindStringSubmatch(w); name != nil {
					u.flags = append(u.flags, name[1])
				}
			}
			found = append(found, u)
		}
	}
	return found
}

// verb returns the verb at the beginning of the words. A verb of a family has two words.
func verb(words []string) (rest, verb []string) {
	for len(words) > 0 && (len(verb) == 0 || len(verb) == 1 && slices.Contains(families, verb[0])) && isVerb.MatchString(words[0]) {
		verb, words = append(verb, words[0]), words[1:]
	}
	return words, verb
}

func TestMakeTargetsAndSuitesOfTheDocsExist(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	suites, err := os.ReadFile(".ci/suite")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range regexp.MustCompile("(?m)(?:^|`|&& )make ([a-z-]+)").FindAllStringSubmatch(string(content), -1) {
			if !bytes.Contains(makefile, []byte("\n"+target[1]+":")) {
				t.Errorf("%s: the Makefile has no target %s", page, target[1])
			}
		}
		for _, suite := range regexp.MustCompile(`\.ci/suite ([a-z-]+)`).FindAllStringSubmatch(string(content), -1) {
			if !bytes.Contains(suites, []byte("\n"+suite[1]+")")) {
				t.Errorf("%s: .ci/suite has no suite %s", page, suite[1])
			}
		}
	}
}

// Each suite that the script lists has a case, and each case is listed.
func TestTheListOfSuitesIsComplete(t *testing.T) {
	script, err := os.ReadFile(".ci/suite")
	if err != nil {
		t.Fatal(err)
	}
	names := func(pattern string) (all []string) {
		for _, name := range regexp.MustCompile(pattern).FindAllSubmatch(script, -1) {
			all = append(all, string(name[1]))
		}
		slices.Sort(all)
		return all
	}
	listed, cases := names(`(?m)^  ([a-z-]+)  +[A-Za-z0-9]`), names(`(?m)^([a-z-]+)\)`)
	if !slices.Equal(listed, cases) {
		t.Errorf("the script lists %q and runs %q", listed, cases)
	}
}

// The first command of the README runs, and its table has the columns and rows that the
// README shows.
func TestTheFirstCommandOfTheReadmePrintsWhatItSays(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the benchmark")
	}
	all := blocks(t, "README.md")
	first := all[slices.IndexFunc(all, func(b block) bool { return b.language == "console" })]
	shown, isFirst := strings.CutPrefix(first.text, "$ go run ./cmd/zkbench >results.txt\n")
	if !isFirst {
		t.Fatalf("the first command is %q", first.text)
	}
	var stdout, stderr bytes.Buffer
	// -count 1: the same experiment, a tenth of the time.
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/zkbench", "run", "-count", "1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// go run prints exit code 4 on stderr: on a busy machine, trials are invalid.
	if err := cmd.Run(); err != nil && !strings.HasSuffix(stderr.String(), "exit status 4\n") {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	shape := func(table string) string {
		var lines []string
		for line := range strings.Lines(table) {
			fields := strings.Fields(line)
			if len(fields) > 5 && fields[0] == "recipe" {
				lines = append(lines, strings.Join(fields, " "))
			} else if len(fields) > 5 && fields[0] == "election" {
				lines = append(lines, strings.Join(fields[:5], " "))
			}
		}
		return strings.Join(lines, "\n")
	}
	want := shape(shown)
	if got := shape(stderr.String()); got != want || want == "" {
		t.Errorf("the table is\n%s\nthe README shows\n%s", got, want)
	}
}
