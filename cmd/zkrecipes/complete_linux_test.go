package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// TestAShellInsertsNamesQuoted: whatever a znode's name contains, TAB completes it to one argument
// with exactly these bytes. The shell runs no part of it.
func TestAShellInsertsNamesQuoted(t *testing.T) {
	for shell, run := range map[string]struct {
		args  []string
		setup string
		names []string // beginnings of names, as a user types them
	}{
		"bash": {[]string{"bash", "--norc", "--noprofile", "-i"}, `source <(zkrecipes completion bash)`, []string{`\h`, `u:`, `h\ `, `a\;to`}},
		"zsh":  {[]string{"zsh", "-f", "-i"}, `setopt interactivecomments; autoload -Uz compinit; compinit -u -D; eval "$(zkrecipes completion zsh)"`, []string{`h\ `, `a\;to`}},
		"fish": {[]string{"fish", "--no-config", "-i"}, `zkrecipes completion fish | source`, []string{`h\ `, `a\;to`}},
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				if os.Getenv("ZKRECIPES_REQUIRE_PACKAGING") != "" {
					t.Fatalf("ZKRECIPES_REQUIRE_PACKAGING is set, but there is no %s", shell)
				}
				t.Skipf("SKIPPED: there is no %s; .ci/suite release installs it", shell)
			}
			s := startShell(t, run.args, run.setup)
			for _, name := range hostileNames {
				first := string([]rune(name)[:1])
				if got := s.completed(first, "/"+name); got != "/"+name {
					t.Errorf("%q is completed as %q", name, got)
				}
			}
			for _, begin := range run.names {
				want := ""
				for _, name := range hostileNames {
					if strings.HasPrefix(name, strings.ReplaceAll(begin, `\`, "")) {
						want = "/" + name
					}
				}
				if got := s.completed(begin, want); got != want {
					t.Errorf("%q is completed as %q, want %q", begin, got, want)
				}
			}
			// The shells differ in how they complete after an open quote, but they run nothing. If
			// the completion has closed the quote, the closing quote of this line is in a comment.
			for _, quote := range []string{`'`, `"`} {
				for _, name := range hostileNames[:5] {
					s.run("zkrecipes contenders " + quote + "/" + string([]rune(name)[:1]) + "\t #" + quote)
				}
			}
			for _, name := range unprintableNames {
				if got := s.completed(name[:1], "/"+name[:1]); got != "/"+name[:1] {
					t.Errorf("%q is completed as %q", name, got)
				}
			}
			if _, err := os.Stat(filepath.Join(s.dir, "ran")); err == nil {
				t.Errorf("%s ran a command of a name; the terminal shows\n%s", shell, s.seen.String())
			}
		})
	}
}

// shell is an interactive shell on a terminal.
type shell struct {
	t         *testing.T
	dir       string
	arguments string // the file with the arguments of the last zkrecipes
	terminal  *os.File
	seen      *terminalOutput
}

func startShell(t *testing.T, args []string, setup string) *shell {
	s := &shell{t: t, dir: t.TempDir(), seen: &terminalOutput{}}
	s.arguments = filepath.Join(s.dir, "arguments")
	bin := filepath.Join(s.dir, "bin")
	must.Do(t, os.Mkdir(bin, 0o755))
	tool, stub := must.Get(exec.LookPath("zkrecipes"))(t), must.Get(exec.LookPath("hostile"))(t)
	must.Do(t, os.WriteFile(filepath.Join(bin, "zkrecipes"), []byte("#!/bin/sh\ncase $1 in\ncompletion) exec '"+tool+"' \"$@\" ;;\n*) exec '"+stub+"' \"$@\" ;;\nesac\n"), 0o755))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+s.dir, "TERM=dumb", "LC_ALL=C.UTF-8",
		"ARGUMENTS="+s.arguments, "ZKRECIPES_CONFIG=", "ZKRECIPES_SERVERS=zk", "XDG_CONFIG_HOME="+s.dir, "XDG_DATA_HOME="+s.dir)
	s.terminal = must.Get(pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200}))(t)
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s.seen, s.terminal)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		<-read
		s.terminal.Close()
	})
	s.send(setup + "\n")
	return s
}

func (s *shell) send(text string) {
	s.t.Helper()
	must.Get(s.terminal.WriteString(text))(s.t)
}

// completed types the beginning of a name, TAB and Enter, and returns the argument of zkrecipes.
// Completion is bounded by time, so it tries again until the argument is want.
func (s *shell) completed(begin, want string) (got string) {
	s.t.Helper()
	for begun := time.Now(); ; {
		got = s.run("zkrecipes contenders /" + begin + "\t")
		if got == want || got != "/"+begin || time.Since(begun) > watchdog.Patience/4 {
			return got
		}
	}
}

// run types a line and Enter, and returns the arguments of the zkrecipes in it after the verb.
func (s *shell) run(line string) string {
	s.t.Helper()
	must.Do(s.t, os.RemoveAll(s.arguments))
	s.send(line + "\n")
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(s.arguments); err == nil {
			words := bytes.Split(text, []byte{0})
			return string(bytes.Join(words[1:], []byte{0}))
		}
		if time.Since(begun) > watchdog.Patience {
			s.t.Fatalf("no zkrecipes ran for %q; the terminal shows\n%s", line, s.seen.String())
		}
	}
}
