package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// A trial of a tenth of a second would have only ten steps of a hundredth.
func TestTheServersProcessorTimeHasNoSteps(t *testing.T) {
	java := filepath.Join(t.TempDir(), "java")
	must.Do(t, os.WriteFile(java, []byte("#!/bin/sh\nwhile :; do :; done\n"), 0o700))
	cmd := exec.Command(java)
	must.Do(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	used := 0.0
	for used == 0 && t.Context().Err() == nil {
		used, _ = childrenCPU()
	}
	if steps := 100 * used; math.Abs(steps-math.Round(steps)) < 1e-6 {
		t.Errorf("%v s, a multiple of a hundredth", used)
	}
}

func TestInterruptKillsAVerbThatOnlyReadsFiles(t *testing.T) {
	ctx := watchdog.Bounded(t)
	for _, verb := range offline {
		file := filepath.Join(t.TempDir(), "fifo")
		must.Do(t, syscall.Mkfifo(file, 0o600))
		cmd := exec.CommandContext(ctx, "zkbench", verb, file, file)
		must.Do(t, cmd.Start())
		writer := must.Get(os.OpenFile(file, os.O_WRONLY, 0))(t) // waits until the verb reads
		defer writer.Close()
		must.Do(t, cmd.Process.Signal(os.Interrupt))
		if err := cmd.Wait(); cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func TestADirectoryHasAFileSystem(t *testing.T) {
	for dir, want := range map[string]bool{"/": true, t.TempDir(): true, "/proc/self": true, "/no such directory": false} {
		if got := filesystem(dir); (got != "") != want {
			t.Errorf("%s: %q", dir, got)
		}
	}
	if got := filesystem("/proc/self"); got != "proc on proc" {
		t.Errorf("/proc: %q", got)
	}
}
