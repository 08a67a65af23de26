package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/scripttest"
	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestMain makes the test binary act as the programs that the scripts run.
func TestMain(m *testing.M) {
	testscript.Main(leaktest.Checked{Tests: ensembletest.Owner{Tests: tests{m}}}, map[string]func(){
		"zkrecipes": func() { os.Exit(Main()) },
		"patiently": func() { os.Exit(patiently(os.Args[1:])) },
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

// TestToolDoesNotCarryZooKeeper: the tool does not contain a ZooKeeper client.
func TestToolDoesNotCarryZooKeeper(t *testing.T) {
	out := must.Get(exec.Command("go", "list", "-deps", ".").Output())(t)
	for dep := range strings.FieldsSeq(string(out)) {
		if strings.Contains(dep, "go-zookeeper") || strings.Contains(dep, "/recipes/zookeeper") {
			t.Errorf("zkrecipes depends on %s", dep)
		}
	}
}
