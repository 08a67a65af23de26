package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// descriptors returns how many descriptors a process has open.
func descriptors(pid int) int {
	open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(open)
}

// TestIdleConnectionsLeaveDescriptors: a waiter with hundreds of idle connections to -status still
// answers a probe, and starts its command when it is granted, whatever the limit of descriptors is.
func TestIdleConnectionsLeaveDescriptors(t *testing.T) {
	for _, limit := range []int{56, 80, 1024} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			s := newSuspended(t, nil, "lock", "/l", "--", "sh", "-c", ticks)
			s.works()
			said := filepath.Join(s.dir, "said")
			waiter := exec.Command("sh", "-c", fmt.Sprintf("ulimit -n %d; exec zkrecipes lock -status 127.0.0.1:0 -v /l -- true 2>%s", limit, said))
			waiter.Dir, waiter.Env = s.dir, append(s.zkrecipes().Env, "ZKRECIPES_LOG_LEVEL=info")
			must.Do(t, waiter.Start())
			t.Cleanup(func() { _ = waiter.Process.Kill(); _ = waiter.Wait() })
			s.await("it waits in line", func() bool { return strings.Contains(s.read("said"), "ahead") })
			at := address.FindString(s.read("said"))
			before := descriptors(waiter.Process.Pid)

			closed := make(chan struct{}, 300)
			for range cap(closed) {
				c := must.Get(net.Dial("tcp", strings.TrimPrefix(at, "http://")))(t)
				t.Cleanup(func() { _ = c.Close() })
				go func() { _, _ = io.Copy(io.Discard, c); closed <- struct{}{} }()
			}
			most := 0
			s.await("all connections were accepted", func() bool {
				most = max(most, descriptors(waiter.Process.Pid))
				return len(closed) >= cap(closed)-16 || descriptors(waiter.Process.Pid) >= limit-1
			})
			if most > before+20 || most > limit-24 {
				t.Errorf("%d descriptors were open, and %d without connections", most, before)
			}
			if limit > 56 {
				response := must.Get((&http.Client{Timeout: watchdog.Patience}).Get(at + "/healthz"))(t)
				_ = response.Body.Close()
			}
			s.signal(syscall.SIGTERM) // the holder
			done := make(chan error, 1)
			go func() { done <- waiter.Wait() }()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("%v: %s", err, s.read("said"))
				}
			case <-time.After(watchdog.Patience):
				t.Error("the waiter still waits")
			}
		})
	}
}
