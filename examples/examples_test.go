// Package examples_test runs the examples against the in-process server, with the plugin
// executable.
package examples_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// patience bounds every wait. Only a failing test waits that long.
const patience = watchdog.Patience

func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the plugin")
	}
	if runtime.GOOS == "windows" {
		t.Skip("ends the examples with a signal")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./leader", "./cron", "../cmd/zkrecipes-plugin")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, test := range map[string]func(world){
		"one instance leads, and campaigns again after a loss": leads,
		"at most one turn runs in each period":                 runs,
	} {
		t.Run(name, func(t *testing.T) {
			server, err := zkserver.Listen(zkserver.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = server.Close() })
			test(world{t, server, dir})
		})
	}
}

// world is a server, and the directory with the examples and the plugin.
type world struct {
	*testing.T
	server *zkserver.Server
	dir    string
}

// program is a running example.
type program struct {
	world
	cmd   *exec.Cmd
	lines <-chan string // of stdout; closed at its end
}

// start starts an example. The end of the test terminates it, and waits for its exit.
func (w world) start(name string, args ...string) program {
	w.Helper()
	r, stdout := io.Pipe()
	cmd := exec.Command(filepath.Join(w.dir, name), args...)
	cmd.Env = append(os.Environ(), "ZKRECIPES_SERVERS="+w.server.Addr(), "ZKRECIPES_PLUGIN_DIR="+w.dir,
		"ZKRECIPES_CONFIG=", "ZKRECIPES_LOG_LEVEL=error", "HOME="+w.dir)
	cmd.Stdout, cmd.Stderr = stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	lines := make(chan string, 1000)
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = stdout.CloseWithError(cmd.Wait())
	}()
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
	}()
	w.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(patience):
			w.Errorf("%s does not exit", name)
			_ = cmd.Process.Kill()
		}
	})
	return program{w, cmd, lines}
}

// next returns the next line of stdout.
func (p program) next() string {
	p.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.Fatalf("%s has exited", p.cmd)
		}
		return line
	case <-time.After(patience):
		p.Fatalf("%s prints nothing", p.cmd)
	}
	panic("unreachable")
}

func (p program) expect(part string) {
	p.Helper()
	if line := p.next(); !strings.Contains(line, part) {
		p.Fatalf("%q, not %q", line, part)
	}
}

func (p program) terminate() {
	p.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.Fatal(err)
	}
}

func leads(w world) {
	first := w.start("leader", "-name", "first")
	first.expect("first leads with token ")
	for _, id := range w.server.Sessions() {
		w.server.ExpireSession(id)
	}
	first.expect("session lost")
	first.expect("first leads with token ")

	second := w.start("leader", "-name", "second")
	first.terminate()
	first.expect("first has resigned")
	second.expect("second leads with token ")
}

func runs(w world) {
	args := []string{"-every", "1s", "/examples/cron", "sh", "-c", `echo "$CRON_TIME $CRON_TOKEN"`}
	one, two := w.start("cron", args...), w.start("cron", args...)
	var turns []time.Time
	for range 5 {
		var line string
		select {
		case line = <-one.lines:
		case line = <-two.lines:
		case <-time.After(patience):
			w.Fatal("no command runs")
		}
		when, token, ok := strings.Cut(line, " ")
		began, err := time.Parse(time.RFC3339Nano, when)
		if !ok || token == "" || err != nil {
			w.Fatalf("the command prints %q", line)
		}
		turns = append(turns, began)
	}
	slices.SortFunc(turns, time.Time.Compare)
	for i, began := range turns[1:] {
		if passed := began.Sub(turns[i]); passed < 900*time.Millisecond {
			w.Errorf("a turn began %v after another one", passed)
		}
	}
}
