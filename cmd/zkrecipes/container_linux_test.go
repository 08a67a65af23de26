package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// orphaning leaves five processes that end after their parents, and then waits for TERM.
const orphaning = `trap 'exit 7' TERM INT
for i in 1 2 3 4 5; do sh -c "sh -c 'until test -e parents; do sleep 0.01; done; : >orphan.$i' &"; done
: >parents
while :; do sleep 0.01; done`

// childrenOf returns the children of all threads of a process. A child is in the list of the thread
// that started it, and a Go program may start one from any thread.
func childrenOf(pid int) (children []string) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, thread := range threads {
		list, _ := os.ReadFile(thread) // the thread may have ended
		children = append(children, strings.Fields(string(list))...)
	}
	return children
}

// A process that collects nothing leaves each orphan as a zombie, and the container runs out of
// processes.
func TestOrphansAreCollected(t *testing.T) {
	namespace := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if id := os.Getuid(); id != 0 {
		namespace.Cloneflags |= syscall.CLONE_NEWUSER
		namespace.UidMappings = []syscall.SysProcIDMap{{HostID: id, Size: 1}}
		namespace.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	interactive := *namespace
	interactive.Setsid, interactive.Setctty = true, true
	for name, tt := range map[string]struct {
		attr  *syscall.SysProcAttr
		env   []string
		typed bool
	}{
		"the first process of a container":      {attr: namespace},
		"the first process, started at a shell": {attr: &interactive, typed: true},
		"asked to":                              {env: []string{job.ReapEnv + "=1"}},
		"asked to, at a shell":                  {attr: &syscall.SysProcAttr{Setsid: true, Setctty: true}, env: []string{job.ReapEnv + "=1"}, typed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, server := t.TempDir(), must.Get(zkserver.Listen(zkserver.Config{}))(t)
			defer server.Close()
			tool := exec.Command("zkrecipes", "lock", "/l", "--", "sh", "-c", orphaning)
			tool.Dir, tool.Stderr, tool.SysProcAttr = dir, os.Stderr, tt.attr
			tool.Env = append(os.Environ(), append(tt.env, "ZKRECIPES_SERVERS="+server.Addr(), "ZKRECIPES_LOG_LEVEL=error", "GORACE="+quickExit, "HOME="+dir)...)
			terminal, theirs, err := pty.Open()
			must.Do(t, err)
			defer terminal.Close()
			defer theirs.Close()
			if tt.typed {
				tool.Stdin = theirs
			}
			if err := tool.Start(); errors.Is(err, syscall.EPERM) {
				t.Skip("SKIPPED: this user may not make a namespace of processes")
			} else if err != nil {
				t.Fatal(err)
			}
			defer tool.Process.Kill()
			for end := time.Now().Add(watchdog.Patience); ; time.Sleep(2 * time.Millisecond) { // polls, because these are other processes
				ended := must.Get(filepath.Glob(filepath.Join(dir, "orphan.*")))(t)
				children := childrenOf(tool.Process.Pid)
				if len(ended) == 5 && len(children) == 1 {
					break // the one that runs the verb
				}
				if time.Now().After(end) {
					t.Fatalf("%d of 5 orphans have ended, and %d processes are children of the first: %v", len(ended), len(children), children)
				}
			}
			if tt.typed {
				must.Get(terminal.WriteString("\x03"))(t) // Ctrl-C
			} else {
				must.Do(t, tool.Process.Signal(syscall.SIGTERM))
			}
			if err, ok := errors.AsType[*exec.ExitError](tool.Wait()); !ok || err.ExitCode() != 7 {
				t.Errorf("%v; want the exit code of the command", err)
			}
		})
	}
}
