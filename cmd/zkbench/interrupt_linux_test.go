package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

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
