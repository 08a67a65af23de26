package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/scripttest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestMain makes the test binary act as the programs that the scripts run.
func TestMain(m *testing.M) {
	testscript.Main(leaktest.Checked{Tests: ensembletest.Owner{Tests: tests{m}}}, map[string]func(){
		"zkrecipes":        func() { os.Exit(job.Reap(Main)) },
		"hostile":          func() { os.Exit(hostile(os.Args[1:])) },
		"patiently":        func() { os.Exit(patiently(os.Args[1:])) },
		"untrusted-plugin": func() { plugin.Serve(openDoctored); syscall.Exit(0) },
		// The host passes no GORACE (see quickExit) to a plugin. This exit does not sleep.
		"zkrecipes-plugin": func() { plugin.Serve(zookeeper.Open, plugin.Resume(zookeeper.Resume)); syscall.Exit(0) },
	})
}

// tests runs the tests with the default action for each signal that a script sends. The
// programs keep the actions that they inherit.
type tests struct{ *testing.M }

func (t tests) Run() int {
	scripttest.ResetSignals()
	return leaktest.SideBySide{Tests: t.M, Processor: 2}.Run()
}

// patiently runs a command with -timeout, until its output matches. The arguments are a pattern for
// the output, and the command. The timeout includes the start of the plugin and the time to
// connect, so on a busy machine it can pass before the tested wait begins. While no output matches,
// patiently repeats the command with twice the timeout, up to a minute. It returns the exit code of
// the last run.
func patiently(args []string) int {
	want, args := regexp.MustCompile("(?m)"+args[0]), slices.Clone(args[1:])
	at := slices.Index(args, "-timeout") + 1
	timeout, err := time.ParseDuration(args[at])
	if at == 0 || err != nil {
		panic(err)
	}
	for {
		args[at] = timeout.String()
		command := exec.Command(args[0], args[1:]...)
		var stdout, stderr bytes.Buffer
		command.Stdin, command.Stdout, command.Stderr = os.Stdin, &stdout, &stderr
		_ = command.Run() // the exit code is returned
		if timeout *= 2; want.Match(stdout.Bytes()) || want.Match(stderr.Bytes()) || timeout > time.Minute {
			os.Stdout.Write(stdout.Bytes())
			os.Stderr.Write(stderr.Bytes())
			return command.ProcessState.ExitCode()
		}
	}
}

// TestBinariesOfOneBuildStartWithoutAWarning: this holds even if they were built without a commit,
// as from a tarball. A plugin of another build causes a warning with advice.
func TestBinariesOfOneBuildStartWithoutAWarning(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows the mode does not show who may change the plugin")
	}
	t.Parallel()
	dir := t.TempDir()
	build := func(ldflags string, packages ...string) {
		t.Helper()
		cmd := exec.Command("go", append([]string{"build", "-buildvcs=false", "-ldflags", "-s -w " + ldflags, "-o", dir + "/"}, packages...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	server := must.Get(zkserver.Listen(zkserver.Config{}))(t)
	t.Cleanup(func() { server.Close() })
	said := func() string {
		t.Helper()
		cmd := exec.Command(filepath.Join(dir, "zkrecipes"), "contenders", "-servers", server.Addr(), "/l")
		cmd.Env = []string{"HOME=" + t.TempDir()}
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		return stderr.String()
	}
	build("", "../zkrecipes", "../zkrecipes-plugin")
	if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	if text := said(); strings.Contains(text, "WARN") {
		t.Errorf("of one build: %s", text)
	}
	build("-X github.com/zkrecipes/zkrecipes/internal/version.sources=others", "../zkrecipes-plugin")
	if text := said(); !strings.Contains(text, "of another build") || !strings.Contains(text, "zkrecipes init") {
		t.Errorf("of two builds: %s", text)
	}
}
