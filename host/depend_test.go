package host_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// TestHostDoesNotCarryZooKeeper: an application that talks to a plugin must not
// contain the ZooKeeper client, nor the implementation.
func TestHostDoesNotCarryZooKeeper(t *testing.T) {
	out := must.Get(exec.Command("go", "list", "-deps", ".").Output())(t)
	for _, dep := range strings.Fields(string(out)) {
		if strings.Contains(dep, "go-zookeeper") || strings.HasSuffix(dep, "/recipes/zookeeper") || strings.Contains(dep, "/recipes/zookeeper/") {
			t.Errorf("host depends on %s", dep)
		}
	}
}
