//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// The timeout is long, so that the command runs between warning and loss even on a busy
// machine.
func TestACommandIsWarnedBeforeTheLoss(t *testing.T) {
	testall.Require(t)
	t.Parallel()
	server := must.Get(zkserver.Listen(zkserver.Config{MaxSessionTimeout: time.Hour}))(t)
	defer server.Close()
	dir := t.TempDir()
	read := func(name string) string {
		for end := time.Now().Add(max(watchdog.Patience, 2*time.Minute)); ; time.Sleep(10 * time.Millisecond) { // polls, because it is another process
			if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				return string(text)
			} else if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
	var said strings.Builder
	tool := exec.Command("zkrecipes", "lock", "-session-timeout", "1m", "-warn-signal", "USR1", "/l", "--", "sh", "-c",
		`trap ': >warned' USR1; trap ': >ended; exit' TERM; : >runs; while :; do sleep 0.05; done`)
	tool.Dir, tool.Stderr = dir, &said
	tool.Env = append(os.Environ(), "ZKRECIPES_SERVERS="+server.Addr(), "ZKRECIPES_LOG_LEVEL=error", "GORACE="+quickExit, "HOME="+dir)
	must.Do(t, tool.Start())
	defer tool.Process.Kill()
	read("runs")
	_ = server.Close()
	read("warned")
	if _, err := os.Stat(filepath.Join(dir, "ended")); err == nil {
		t.Error("the hold was lost before the warning")
	}
	read("ended")
	_ = tool.Wait()
	if text := said.String(); !strings.Contains(text, "no server answers: /l is lost within 1") && !strings.Contains(text, "no server answers: /l is lost within 2") {
		t.Errorf("said %q", text)
	}
}
