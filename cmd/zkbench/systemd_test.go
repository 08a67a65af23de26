package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// readUnit returns the systemd unit's settings, by name.
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

// TestSystemdUnitRunsWhatZkbenchTakes gives the unit's arguments to zkbench's own flags,
// as systemd would, and the unit to systemd where it is there.
func TestSystemdUnitRunsWhatZkbenchTakes(t *testing.T) {
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
	// Another copy: the executable that it names is not on this machine.
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

// TestParallelSSHRunsWhatZkbenchTakes finds the line in the documentation.
func TestParallelSSHRunsWhatZkbenchTakes(t *testing.T) {
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
	// Each worker's own timeout has to be longer than parallel-ssh waits by default.
	if !strings.Contains(line, "-t 0") {
		t.Error("parallel-ssh ends a command after a minute, unless told -t 0")
	}
}

// checkCrew checks flags by which three workers measure together.
func checkCrew(t *testing.T, args []string) {
	t.Helper()
	s, err := command{transports: transports}.parseSettings(args)
	if err != nil {
		t.Fatalf("zkbench does not take %q: %v", args, err)
	}
	if s.join.path == "" || s.join.workers != 3 || len(s.servers.values) == 0 {
		t.Errorf("%d processes meet at %q on %v", s.join.workers, s.join.path, s.servers.values)
	}
}
