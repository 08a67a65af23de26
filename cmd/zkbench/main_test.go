package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
)

func TestMain(m *testing.M) {
	testscript.Main(leaktest.Checked{Tests: leaktest.SideBySide{Tests: ensembletest.Owner{Tests: m}}}, map[string]func(){
		// A busy machine does not make the trials of scripts invalid.
		"zkbench": func() {
			os.Exit(command{stdout: os.Stdout, stderr: os.Stderr, transports: transports, terminal: terminal, check: allValid}.process())
		},
		"zkbench-build": buildMain,
		// Programs that wait for a command's first result, and then do what their
		// names say.
		"interrupt-at-first-result": func() { os.Exit(interruptAtFirstResult(os.Args[1:])) },
		"hangup-at-first-result": func() {
			// Whether the test itself runs under nohup is of no interest here.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
			os.Exit(hangupAtFirstResult(os.Args[1:]))
		},
		"nohup-hangup-at-first-result": func() {
			signal.Ignore(syscall.SIGHUP)
			os.Exit(hangupAtFirstResult(os.Args[1:]))
		},
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:       filepath.Join("testdata", "script"),
		Setup:     withGo,
		Condition: inTestAll,
	})
}

// inTestAll is the condition [test-all] of lines that only make test-all runs.
func inTestAll(condition string) (bool, error) {
	if condition != "test-all" {
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	return testall.On(), nil
}

// withGo has scripts use the go command as $GO, and the module in $TOP.
func withGo(env *testscript.Env) error {
	top, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	env.Setenv("TOP", top)
	env.Setenv("GO", goCommand)
	// With the race detector a program sleeps for a second before it ends.
	env.Setenv("GORACE", "atexit_sleep_ms=0")
	for _, name := range []string{"HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"} {
		env.Setenv(name, os.Getenv(name))
	}
	return nil
}
