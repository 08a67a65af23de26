package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/zkrecipes/zkrecipes/internal/leaktest"
)

func TestMain(m *testing.M) {
	testscript.Main(leaktest.Checked{Tests: m}, map[string]func(){
		"zkbench": func() { os.Exit(Main()) },
		// Programs that do what their names say to whoever waits for the first
		// result.
		"interrupt-at-first-result": func() { os.Exit(interruptAtFirstResult(os.Interrupt, os.Args[1:])) },
		"hangup-at-first-result":    func() { os.Exit(interruptAtFirstResult(syscall.SIGHUP, os.Args[1:])) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   filepath.Join("testdata", "script"),
		Setup: withGo,
	})
}

// withGo lets scripts use the go command as $GO, and the module in $TOP.
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
	for _, name := range []string{"HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"} {
		env.Setenv(name, os.Getenv(name))
	}
	return nil
}
