package examples_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// requirePromtoolEnv makes the tests fail without promtool.
const requirePromtoolEnv = "ZKRECIPES_REQUIRE_PROMTOOL"

// promtool runs Prometheus' checker in the folder of the rules.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		skip := t.Skipf
		if os.Getenv(requirePromtoolEnv) != "" {
			skip = t.Fatalf
		}
		skip("NOT RUN, the alert rules and the dashboard were not checked: %v; .ci/install-promtool FOLDER installs it", err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = "monitoring"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %q: %v\n%s", args, err, out)
	}
}

// Each alert fires when it should, and only then. TestScripts/status of cmd/zkrecipes compares
// the names of metrics with those that a run serves.
func TestAlertRules(t *testing.T) {
	promtool(t, "check", "rules", "alerts.yaml")
	promtool(t, "test", "rules", "alerts_test.yaml")
}

// Each alert has a test in alerts_test.yaml, and a row in README.md.
func TestEachAlertIsTestedAndExplained(t *testing.T) {
	rules := string(must.Get(os.ReadFile(filepath.Join("monitoring", "alerts.yaml")))(t))
	tests := string(must.Get(os.ReadFile(filepath.Join("monitoring", "alerts_test.yaml")))(t))
	page := string(must.Get(os.ReadFile(filepath.Join("monitoring", "README.md")))(t))
	alerts := 0
	for line := range strings.Lines(rules) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "- alert: ")
		if !ok {
			continue
		}
		alerts++
		if !strings.Contains(tests, "alertname: "+name+"\n        exp_alerts:") {
			t.Errorf("no test expects %s", name)
		}
		if !strings.Contains(page, "\n| `"+name+"` |") {
			t.Errorf("README.md has no row for %s", name)
		}
	}
	if alerts == 0 {
		t.Error("there are no alerts")
	}
}

// The expressions of the dashboard are PromQL: with values for Grafana's variables, promtool
// accepts them as rules.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join("monitoring", "dashboard.json")))(t), &dashboard))
	variables := strings.NewReplacer("$__rate_interval", "1m", "$job", "j", "$instance", "i")
	rules := "groups: [{name: dashboard, rules: ["
	taken := map[[2]int]string{}
	for i, p := range dashboard.Panels {
		if len(p.Targets) == 0 || p.Title == "" {
			t.Errorf("panel %d, %q, has %d targets", i, p.Title, len(p.Targets))
		}
		for j, target := range p.Targets {
			rules += fmt.Sprintf("\n{record: 'p%d:%d', expr: %q},", i, j, variables.Replace(target.Expr))
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q covers %q, or leaves the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	if len(dashboard.Panels) == 0 {
		t.Fatal("there are no panels")
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	must.Do(t, os.WriteFile(file, []byte(rules+"\n]}]\n"), 0o600))
	promtool(t, "check", "rules", file)
}
