package interop_test

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

// libraries return the commands that start a peer.
var libraries = map[string]func(testing.TB) []string{
	"curator": func(t testing.TB) []string {
		return curator(t, "Peer", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
	},
	"kazoo": func(t testing.TB) []string { return kazoo(t, "peer.py") },
}

// If curatorEnv or kazooEnv is set, it names a folder of .ci/install-peers with the version of the
// library to test. Otherwise the installed one is tested.
const (
	curatorEnv = "ZKRECIPES_CURATOR"
	kazooEnv   = "ZKRECIPES_KAZOO"
)

// classes are compiled once for all tests.
var classes struct {
	sync.Mutex
	dir string
}

// curator compiles a class and returns the command that runs it. Every Java runtime of
// Debian contains the compiler.
func curator(t testing.TB, class string, options ...string) []string {
	jars, recipes := "/usr/share/java/curator-recipes.jar:/usr/share/java/slf4j-nop.jar", "/usr/share/java/curator-recipes.jar"
	if dir := os.Getenv(curatorEnv); dir != "" {
		found := must.Get(filepath.Glob(filepath.Join(dir, "*.jar")))(t)
		jars, recipes = strings.Join(found, ":"), filepath.Join(dir, "curator-recipes.jar")
	}
	if _, err := os.Stat(recipes); err != nil {
		missing(t, "Curator (Debian's libcurator-recipes-java)", err)
	}
	installation := must.Get(ensemble.Find())(t)
	java := installation.Java
	classes.Lock()
	defer classes.Unlock()
	if classes.dir == "" {
		classes.dir = must.Get(os.MkdirTemp("", "interop-"))(t)
	}
	command := slices.Concat([]string{java}, options, []string{"-cp", jars + ":" + classes.dir, class})
	if _, err := os.Stat(filepath.Join(classes.dir, class+".class")); err == nil {
		return command
	}
	source := filepath.Join("..", "..", "..", "testdata", "interop", class+".java")
	if out, err := exec.Command(java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", jars, "-d", classes.dir, source).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", source, err, out)
	}
	return command
}

func kazoo(t testing.TB, script string) []string {
	const python = "/usr/bin/python3" // only Debian's Python finds Debian's packages
	command := []string{python}
	if dir := os.Getenv(kazooEnv); dir != "" {
		command = []string{"env", "PYTHONPATH=" + dir, python}
	}
	if out, err := exec.Command(command[0], append(command[1:], "-c", "import kazoo.client, kazoo.recipe.lock")...).CombinedOutput(); err != nil {
		missing(t, "kazoo (Debian's python3-kazoo)", fmt.Errorf("%w\n%s", err, out))
	}
	return append(command, filepath.Join("..", "..", "..", "testdata", "interop", script))
}

func missing(t testing.TB, what string, err error) {
	t.Helper()
	if os.Getenv(requireEnv) != "" {
		t.Fatalf("%s is not installed: %v (and %s requires it)", what, err, requireEnv)
	}
	t.Skipf("SKIPPED, a shared wait queue is not tested: %s is not installed: %v", what, err)
}
