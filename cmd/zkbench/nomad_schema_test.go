package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// block is what Nomad takes in a block: attributes, and blocks by their names.
type block struct {
	attributes string
	blocks     map[string]block
}

// nomadJob is the schema of a job file, as far as this job needs it, by Nomad's
// documentation of the job specification and of the driver exec. Who uses another
// block adds it here.
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

// unknown are the names that the schema does not have.
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

// TestNomadJobHasTheSchemaOfJobs looks for names that Nomad would refuse.
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
