package ensemble_test

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/ensemble/ensembletest"
)

func TestServersDieWithAParentThatIsKilled(t *testing.T) {
	ensembletest.Require(t)
	parent, server := startHelper(t)

	died, err := unix.PidfdOpen(server, 0)
	if err != nil {
		t.Fatalf("open the server's process: %v", err)
	}
	defer unix.Close(died)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait()
	awaitReadable(t, died, "the server outlives its parent")
}

func TestServersOutliveTheGoroutineThatStartedThem(t *testing.T) {
	ensembletest.Require(t)
	var e *ensemble.Ensemble
	var err error
	var starting sync.WaitGroup
	starting.Go(func() {
		// A goroutine that ends while it is locked to its thread takes the
		// thread with it. Were the server forked from there, it would get its
		// parent-death signal now.
		runtime.LockOSThread()
		e, err = ensemble.Start(t.Context(), ensembletest.Quick(1))
	})
	starting.Wait()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	if _, err := e.Server(0).Mode(t.Context()); err != nil {
		t.Error(err)
	}
}

// startHelper starts this test binary as the parent of a server.
func startHelper(t *testing.T) (parent *exec.Cmd, server int) {
	t.Helper()
	parent = exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), helperDirEnv+"="+t.TempDir())
	parent.Stderr = os.Stderr
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { parent.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the helper said %q: %v", line, err)
	}
	if server, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatalf("the helper did not start a server: %s", line)
	}
	return parent, server
}

// awaitReadable waits for a process, by its pidfd, to end.
func awaitReadable(t *testing.T, pidfd int, complaint string) {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 10_000)
		if err == unix.EINTR {
			continue
		}
		if n != 1 || err != nil {
			t.Errorf("%s: %d, %v", complaint, n, err)
		}
		return
	}
}
