package ensembletest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

func TestMain(m *testing.M) { leaktest.Main(ensembletest.Owner{Tests: m}) }

// TestSubject is run by the tests below in a process of its own.
func TestSubject(t *testing.T) {
	first := ensembletest.Shared(t)
	if second := ensembletest.Shared(t); first != second {
		t.Error("two shared servers")
	}
}

func TestWithoutZooKeeperTestsAreSkippedLoudly(t *testing.T) {
	output, err := runSubject(t, "ZOOKEEPER_HOME="+t.TempDir(), "ZKRECIPES_REQUIRE_ZOOKEEPER=")
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	for _, want := range []string{"--- SKIP", "SKIPPED on real ZooKeeper", "apt-get install zookeeper"} {
		if !strings.Contains(output, want) {
			t.Errorf("output without %q:\n%s", want, output)
		}
	}
}

func TestWithoutARequiredZooKeeperTestsFail(t *testing.T) {
	output, err := runSubject(t, "ZOOKEEPER_HOME="+t.TempDir(), "ZKRECIPES_REQUIRE_ZOOKEEPER=1")
	if err == nil || !strings.Contains(output, "ZKRECIPES_REQUIRE_ZOOKEEPER is set") {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestEachRunOnZooKeeperIsCountedOnce(t *testing.T) {
	ensembletest.Require(t)
	file := filepath.Join(t.TempDir(), "count")
	if output, err := runSubject(t, "ZKRECIPES_REAL_COUNT_FILE="+file); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	got := must.Get(os.ReadFile(file))(t)
	if want := strings.Repeat("real-zookeeper: TestSubject\n", 2); string(got) != want {
		t.Errorf("counted %q, want %q", got, want)
	}
}

// runSubject runs TestSubject twice in a new process.
func runSubject(t *testing.T, env ...string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSubject$", "-test.count=2", "-test.v")
	cmd.Env = append(os.Environ(), env...)
	combined, err := cmd.CombinedOutput()
	return string(combined), err
}
