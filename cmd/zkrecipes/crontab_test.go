package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// A crontab has many lines for one minute. Some have a lock of their own, others share one. On a
// small machine all of them are late, and none fails: each line gets its lock, or another line
// holds it. Only a line that is late by a minute may give up.
func TestTheLinesOfACrontab(t *testing.T) {
	srv := must.Get(zkserver.Listen(zkserver.Config{}))(t)
	defer srv.Close()
	number := testall.Count(20, 200)
	if n := os.Getenv("ZKRECIPES_CRONTAB_LINES"); n != "" {
		number = must.Get(strconv.Atoi(n))(t)
	}
	var mu sync.Mutex
	codes := map[int]int{}
	var lines sync.WaitGroup
	begun := time.Now()
	for range number {
		lines.Go(func() {
			cmd := exec.CommandContext(t.Context(), "zkrecipes", "lock", "-try", "-connect-timeout", "1m", "/cron", "--", "true")
			cmd.Env = append(os.Environ(), "ZKRECIPES_SERVERS="+srv.Addr())
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			err := cmd.Run()
			if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			code := cmd.ProcessState.ExitCode()
			late := code == exit.Own && time.Since(begun) >= time.Minute
			if codes[code]++; code != 0 && code != exit.Timeout && !late {
				t.Errorf("exit code %d: %s", code, said.String())
			}
		})
	}
	lines.Wait()
	t.Logf("%d lines ended within %v, by exit code: %v", number, time.Since(begun).Round(time.Second), codes)
	if codes[0] == 0 {
		t.Error("no line had the lock")
	}
}
