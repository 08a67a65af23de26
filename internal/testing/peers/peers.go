// Package peers starts the programs of testdata/interop, which use Curator and kazoo.
package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// If requireEnv is set, tests fail if Curator or kazoo is not installed.
const requireEnv = "ZKRECIPES_REQUIRE_PEERS"

// If curatorEnv or kazooEnv is set, it names a folder of .ci/install-peers with the version of the
// library to test. Otherwise the installed one is tested.
const (
	curatorEnv = "ZKRECIPES_CURATOR"
	kazooEnv   = "ZKRECIPES_KAZOO"
)

// Contender returns the command that contends with a library, "curator" or "kazoo". It takes the
// arguments SERVERS, TIMEOUT_MS, RECIPE, PATH and WITNESS, as peer.py describes. An error means
// that the library is not installed, and that the test may be skipped.
func Contender(t testing.TB, library, classes string) ([]string, error) {
	if library == "kazoo" {
		return Kazoo(t, "peer.py")
	}
	return Curator(t, classes, "Peer", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
}

var compiling sync.Mutex

// Curator compiles a class into the folder classes, unless it is there, and returns the command that
// runs it. Every Java runtime of Debian contains the compiler. The error is that of Contender.
func Curator(t testing.TB, classes, class string, options ...string) ([]string, error) {
	jars, recipes := "/usr/share/java/curator-recipes.jar:/usr/share/java/slf4j-nop.jar", "/usr/share/java/curator-recipes.jar"
	if dir := os.Getenv(curatorEnv); dir != "" {
		found := must.Get(filepath.Glob(filepath.Join(dir, "*.jar")))(t)
		jars, recipes = strings.Join(found, ":"), filepath.Join(dir, "curator-recipes.jar")
	}
	if _, err := os.Stat(recipes); err != nil {
		return nil, missing(t, "Curator (Debian's libcurator-recipes-java)", err)
	}
	installation := must.Get(ensemble.Find())(t)
	command := slices.Concat([]string{installation.Java}, options, []string{"-cp", jars + ":" + classes, class})
	compiling.Lock()
	defer compiling.Unlock()
	if _, err := os.Stat(filepath.Join(classes, class+".class")); err == nil {
		return command, nil
	}
	if out, err := exec.Command(installation.Java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", jars, "-d", classes, source(class+".java")).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", class, err, out)
	}
	return command, nil
}

// Kazoo returns the command that runs a script. The error is that of Contender.
func Kazoo(t testing.TB, script string) ([]string, error) {
	const python = "/usr/bin/python3" // only Debian's Python finds Debian's packages
	command := []string{python}
	if dir := os.Getenv(kazooEnv); dir != "" {
		command = []string{"env", "PYTHONPATH=" + dir, python}
	}
	if out, err := exec.Command(command[0], append(command[1:], "-c", "import kazoo.client, kazoo.recipe.lock")...).CombinedOutput(); err != nil {
		return nil, missing(t, "kazoo (Debian's python3-kazoo)", fmt.Errorf("%w\n%s", err, out))
	}
	return append(command, source(script)), nil
}

func source(name string) string {
	return filepath.Join("..", "..", "..", "testdata", "interop", name)
}

func missing(t testing.TB, what string, err error) error {
	t.Helper()
	if os.Getenv(requireEnv) != "" {
		t.Fatalf("%s is not installed: %v (and %s requires it)", what, err, requireEnv)
	}
	return fmt.Errorf("%s is not installed: %w", what, err)
}
