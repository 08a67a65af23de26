package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){
		"zkbench": func() { os.Exit(Main()) },
		// A program that does what its name says to whoever waits for the
		// first result.
		"interrupt-at-first-result": func() { os.Exit(interruptAtFirstResult(os.Args[1:])) },
	})
}

// leakChecked fails when the tests leave goroutines behind.
type leakChecked struct{ *testing.M }

func (m leakChecked) Run() int {
	code := m.M.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	return code
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
