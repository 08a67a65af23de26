//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A command may be ready for a signal before zkrecipes knows that it runs.
func TestASignalDuringTheStartIsTheCommands(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	r := newRelay()
	defer r.stop()
	_, stop := r.interruptible(t.Context())
	defer stop()
	r.starting()
	c, err := startChild("/bin/sh", []string{"sh", "-c", `trap 'exit 7' USR1; : >"$READY"; while :; do sleep 0.01; done`}, []string{"READY=" + ready})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.kill(); <-c.exited })
	for _, err := os.Stat(ready); err != nil; _, err = os.Stat(ready) {
		select {
		case <-time.After(5 * time.Millisecond): // looks again: it is another process
		case <-t.Context().Done():
			t.Fatal("the command is not ready")
		}
	}
	r.take(syscall.SIGUSR1)
	r.to(c)
	<-c.exited
	if code := c.exitCode(); code != 7 {
		t.Errorf("exit code %d; the signal was lost", code)
	}
}
