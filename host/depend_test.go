package host_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// TestModulesThatTheProductDoesNotContain: walls_test.go checks the imports of this module.
// This test also sees what other modules import.
func TestModulesThatTheProductDoesNotContain(t *testing.T) {
	for _, test := range []struct{ packages, never []string }{
		{[]string{".", "./hostconfig", "../examples/...", "../cmd/zkrecipes"}, []string{"github.com/go-zookeeper/", "github.com/samuel/go-zookeeper/"}},
		// The application chooses the SDK and the exporters.
		{[]string{".", "../plugin", "../cmd/zkrecipes-plugin"}, []string{"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters"}},
	} {
		out := must.Get(exec.Command("go", append([]string{"list", "-deps"}, test.packages...)...).Output())(t)
		for dep := range strings.FieldsSeq(string(out)) {
			if slices.ContainsFunc(test.never, func(prefix string) bool { return strings.HasPrefix(dep, prefix) }) {
				t.Errorf("%q depend on %s", test.packages, dep)
			}
		}
	}
}
