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

// TestMain: the test binary is also the programs that the scripts run.
func TestMain(m *testing.M) {
	testscript.Main(leaktest.Checked{Tests: ensembletest.Owner{Tests: tests{m}}}, map[string]func(){
		"zkrecipes": func() { os.Exit(Main()) },
		"patiently": func() { os.Exit(patiently(os.Args[1:])) },
		// The host gives a plugin no GORACE (see quickExit): this end does not sleep.
		"zkrecipes-plugin": func() { plugin.Serve(zookeeper.Open, plugin.Resume(zookeeper.Resume)); syscall.Exit(0) },
	})
}

// tests are run with the default action for each signal that a script sends. The
// programs are not: what they ignore is what whoever starts them says.
type tests struct{ *testing.M }

func (t tests) Run() int {
	scripttest.ResetSignals()
	return leaktest.SideBySide{Tests: t.M, Processor: 2}.Run()
}

// TestToolDoesNotCarryZooKeeper: all of it goes through the plugin.
func TestToolDoesNotCarryZooKeeper(t *testing.T) {
	out := must.Get(exec.Command("go", "list", "-deps", ".").Output())(t)
	for dep := range strings.FieldsSeq(string(out)) {
		if strings.Contains(dep, "go-zookeeper") || strings.Contains(dep, "/recipes/zookeeper") {
			t.Errorf("zkrecipes depends on %s", dep)
		}
	}
}
