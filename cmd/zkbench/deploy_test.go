package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// jobFile has the names of a Nomad job that this job uses, from Nomad's documentation of the job
// specification and of the driver exec. Decoding refuses all others.
type jobFile struct {
	Variables []struct {
		Name        string         `hcl:"name,label"`
		Type        hcl.Expression `hcl:"type"`
		Default     cty.Value      `hcl:"default"`
		Description string         `hcl:"description"`
	} `hcl:"variable,block"`
	Jobs []struct {
		Name   string   `hcl:"name,label"`
		Remain hcl.Body `hcl:",remain"`
	} `hcl:"job,block"`
}

type jobBody struct {
	Type  string `hcl:"type"`
	Group struct {
		Name       string `hcl:"name,label"`
		Count      int    `hcl:"count"`
		Constraint struct {
			Operator string `hcl:"operator"`
			Value    string `hcl:"value"`
		} `hcl:"constraint,block"`
		Restart struct {
			Attempts int    `hcl:"attempts"`
			Mode     string `hcl:"mode"`
		} `hcl:"restart,block"`
		Reschedule struct {
			Attempts int `hcl:"attempts"`
		} `hcl:"reschedule,block"`
		Task struct {
			Name   string `hcl:"name,label"`
			Driver string `hcl:"driver"`
			Config struct {
				Command string   `hcl:"command"`
				Args    []string `hcl:"args"`
			} `hcl:"config,block"`
			Resources struct {
				CPU    int `hcl:"cpu"`
				Memory int `hcl:"memory"`
			} `hcl:"resources,block"`
		} `hcl:"task,block"`
	} `hcl:"group,block"`
}

// TestNomadJobHasArgumentsThatZkbenchAccepts parses the job as Nomad does, and parses its arguments as
// zkbench does.
func TestNomadJobHasArgumentsThatZkbenchAccepts(t *testing.T) {
	parsed, diags := hclparse.NewParser().ParseHCLFile(filepath.Join("..", "..", "testdata", "nomad", "zkbench.nomad.hcl"))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var file jobFile
	if diags := gohcl.DecodeBody(parsed.Body, nil, &file); diags.HasErrors() {
		t.Fatal(diags)
	}
	variables := map[string]cty.Value{}
	for _, v := range file.Variables {
		variables[v.Name] = v.Default
	}
	if len(file.Jobs) != 1 {
		t.Fatalf("%d jobs", len(file.Jobs))
	}
	var job jobBody
	if diags := gohcl.DecodeBody(file.Jobs[0].Remain, &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(variables)}}, &job); diags.HasErrors() {
		t.Fatal(diags)
	}
	run := job.Group.Task.Config
	if run.Command != "zkbench" || len(run.Args) == 0 || run.Args[0] != "run" || job.Group.Count != 3 {
		t.Fatalf("it runs %s %v, %d times", run.Command, run.Args, job.Group.Count)
	}
	checkCrew(t, run.Args[1:])
}

func readUnit(t *testing.T) map[string]string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "testdata", "systemd", "zkbench@.service")))(t)
	settings := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			settings[key] = value
		}
	}
	return settings
}

// TestSystemdUnitHasArgumentsThatZkbenchAccepts parses the unit's arguments as zkbench does, and lets
// systemd verify the unit if it is installed.
func TestSystemdUnitHasArgumentsThatZkbenchAccepts(t *testing.T) {
	settings := readUnit(t)
	variable, value, _ := strings.Cut(settings["Environment"], "=")
	line := strings.NewReplacer("%i", "3", "${"+variable+"}", value).Replace(settings["ExecStart"])
	args := strings.Fields(line)
	if len(args) < 2 || filepath.Base(args[0]) != "zkbench" || args[1] != "run" {
		t.Fatalf("it runs %q", line)
	}
	checkCrew(t, args[2:])
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("no systemd-analyze here: systemd itself has not read the unit")
		return
	}
	// In a copy, because the executable of the unit is not on this machine.
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "systemd", "zkbench@.service"))
	if err == nil {
		text = []byte(strings.Replace(string(text), args[0], "/bin/true", 1))
		err = os.WriteFile(filepath.Join(dir, "zkbench@3.service"), text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", filepath.Join(dir, "zkbench@3.service")).CombinedOutput(); strings.Contains(string(out), "zkbench@3.service:") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// TestParallelSSHHasArgumentsThatZkbenchAccepts checks the command in docs/benchmark.md.
func TestParallelSSHHasArgumentsThatZkbenchAccepts(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "benchmark.md")))(t)
	_, rest, found := strings.Cut(string(text), "\nparallel-ssh ")
	line, _, _ := strings.Cut(rest, "\n```")
	_, command, quoted := strings.Cut(strings.ReplaceAll(line, "\\\n", " "), "'")
	command, _, closed := strings.Cut(command, "'")
	args := strings.Fields(command)
	if !found || !quoted || !closed || len(args) < 2 || args[0] != "zkbench" || args[1] != "run" {
		t.Fatalf("docs/benchmark.md has no line of parallel-ssh that runs zkbench: %q", line)
	}
	checkCrew(t, args[2:])
	// The timeout must be longer than the default of parallel-ssh.
	if !strings.Contains(line, "-t 0") {
		t.Error("without -t 0, parallel-ssh ends a command after a minute")
	}
}

// checkCrew checks the flags of three workers that measure together.
func checkCrew(t *testing.T, args []string) {
	t.Helper()
	s, err := command{transports: transport.All}.parseSettings(args)
	if err != nil {
		t.Fatalf("zkbench does not take %q: %v", args, err)
	}
	if s.join.path == "" || s.join.workers != 3 || len(s.Servers) == 0 {
		t.Errorf("%d processes meet at %q on %v", s.join.workers, s.join.path, s.Servers)
	}
}
