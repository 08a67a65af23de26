package main

import (
	"path/filepath"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"
)

// jobFile is as much of a Nomad job as says what is run.
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

// TestNomadJobRunsWhatZkbenchTakes parses the job as Nomad does, and gives its
// arguments to zkbench's own flags.
func TestNomadJobRunsWhatZkbenchTakes(t *testing.T) {
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
	if s.join.path == "" || s.join.workers != group.Count || len(s.servers.values) == 0 {
		t.Errorf("%d processes are started, and %d meet at %q on %v", group.Count, s.join.workers, s.join.path, s.servers.values)
	}
}
