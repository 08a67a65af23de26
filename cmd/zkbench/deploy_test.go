package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

type jobFile struct {
	Variables []struct {
		Name    string    `hcl:"name,label"`
		Default cty.Value `hcl:"default"`
		Remain  hcl.Body  `hcl:",remain"`
	} `hcl:"variable,block"`
	Jobs []struct {
		Name   string   `hcl:"name,label"`
		Remain hcl.Body `hcl:",remain"`
	} `hcl:"job,block"`
}

type jobBody struct {
	Groups []struct {
		Name  string `hcl:"name,label"`
		Count int    `hcl:"count"`
		Tasks []struct {
			Name   string `hcl:"name,label"`
			Config struct {
				Command string   `hcl:"command"`
				Args    []string `hcl:"args"`
			} `hcl:"config,block"`
			Remain hcl.Body `hcl:",remain"`
		} `hcl:"task,block"`
		Remain hcl.Body `hcl:",remain"`
	} `hcl:"group,block"`
	Remain hcl.Body `hcl:",remain"`
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
	group := job.Groups[0]
	run := group.Tasks[0].Config
	if run.Command != "zkbench" || len(run.Args) == 0 || run.Args[0] != "run" {
		t.Fatalf("it runs %s %v", run.Command, run.Args)
	}
	s, err := command{transports: transports}.parseSettings(run.Args[1:])
	if err != nil {
		t.Fatalf("zkbench does not take %q: %v", run.Args, err)
	}
	if s.join.path == "" || s.join.workers != group.Count || len(s.servers) == 0 {
		t.Errorf("%d processes are started, and %d meet at %q on %v", group.Count, s.join.workers, s.join.path, s.servers)
	}
}

// block is the schema of a block of Nomad: attributes, and blocks by their names.
type block struct {
	attributes string
	blocks     map[string]block
}

// nomadJob is the schema of a job file, as far as this job needs it, from Nomad's documentation
// of the job specification and of the driver exec.
func nomadJob() block {
	constraint := block{attributes: "attribute operator value"}
	reschedule := block{attributes: "attempts interval delay delay_function max_delay unlimited"}
	restart := block{attributes: "attempts delay interval mode render_templates"}
	task := block{"driver kill_signal kill_timeout kind leader shutdown_delay user", map[string]block{
		"config":     {attributes: "command args cap_add cap_drop ipc_mode pid_mode work_dir"},
		"constraint": constraint,
		"env":        {attributes: "*"},
		"resources":  {attributes: "cpu cores memory memory_max"},
		"restart":    restart,
	}}
	group := block{"count max_client_disconnect shutdown_delay stop_after_client_disconnect", map[string]block{
		"constraint": constraint, "reschedule": reschedule, "restart": restart, "task": task,
	}}
	job := block{"all_at_once datacenters id name namespace node_pool priority region type", map[string]block{
		"constraint": constraint, "group": group, "reschedule": reschedule,
	}}
	variable := block{attributes: "default description type"}
	return block{blocks: map[string]block{"job": job, "variable": variable}}
}

func (b block) unknown(body *hclsyntax.Body, where string) (names []string) {
	for name := range body.Attributes {
		if b.attributes != "*" && !slices.Contains(strings.Fields(b.attributes), name) {
			names = append(names, where+name)
		}
	}
	for _, inner := range body.Blocks {
		if schema, ok := b.blocks[inner.Type]; ok {
			names = append(names, schema.unknown(inner.Body, where+inner.Type+".")...)
		} else {
			names = append(names, where+inner.Type+" {}")
		}
	}
	return names
}

// TestNomadJobHasTheSchemaOfJobs finds names that Nomad would refuse.
func TestNomadJobHasTheSchemaOfJobs(t *testing.T) {
	file := filepath.Join("..", "..", "testdata", "nomad", "zkbench.nomad.hcl")
	parse := func(text []byte) []string {
		parsed, diags := hclparse.NewParser().ParseHCL(text, file)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		return nomadJob().unknown(parsed.Body.(*hclsyntax.Body), "")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if names := parse(text); len(names) > 0 {
		t.Errorf("Nomad does not know %q", names)
	}
	for _, mistake := range []struct{ name, planted, want string }{
		{"mode     =", "modus    =", "job.group.restart.modus"},
		{"resources {", "ressources {", "job.group.task.ressources {}"},
		{"count =", "counts =", "job.group.counts"},
	} {
		if names := parse([]byte(strings.Replace(string(text), mistake.name, mistake.planted, 1))); !slices.Equal(names, []string{mistake.want}) {
			t.Errorf("with %q it finds %q; want %q", mistake.planted, names, mistake.want)
		}
	}
}

func readUnit(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "systemd", "zkbench@.service"))
	if err != nil {
		t.Fatal(err)
	}
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
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "benchmark.md"))
	if err != nil {
		t.Fatal(err)
	}
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
	s, err := command{transports: transports}.parseSettings(args)
	if err != nil {
		t.Fatalf("zkbench does not take %q: %v", args, err)
	}
	if s.join.path == "" || s.join.workers != 3 || len(s.servers) == 0 {
		t.Errorf("%d processes meet at %q on %v", s.join.workers, s.join.path, s.servers)
	}
}
