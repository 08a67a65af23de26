package ensemble_test

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

func TestServersDieWithAParentThatIsKilled(t *testing.T) {
	ensembletest.Require(t)
	parent, server := startHelper(t)

	died, err := unix.PidfdOpen(server, 0)
	if err != nil {
		t.Fatalf("open the server's process: %v", err)
	}
	defer unix.Close(died)
	defer unix.PidfdSendSignal(died, unix.SIGKILL, nil, 0) // if the test fails
	must.Do(t, parent.Process.Kill())
	parent.Wait()
	awaitReadable(t, died, "the server outlives its parent")
}

func TestServersOutliveTheGoroutineThatStartedThem(t *testing.T) {
	ensembletest.Require(t)
	var e *ensemble.Ensemble
	var err error
	thread := onDoomedThread(func() { e, err = ensemble.Start(t.Context(), ensembletest.Quick(1)) })
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	awaitThreadEnd(thread)
	if _, err := e.Server(0).Mode(t.Context()); err != nil {
		t.Error(err)
	}
}

// onDoomedThread runs f on a thread that ends soon after f, because its goroutine ends
// while it is locked to the thread. A server that this thread had forked would get its
// parent-death signal then.
func onDoomedThread(f func()) (tid int) {
	done := make(chan int)
	go func() {
		runtime.LockOSThread()
		tid := unix.Gettid()
		if tid == os.Getpid() { // the main thread never ends: keep it, and use another thread
			tid = onDoomedThread(f)
			runtime.UnlockOSThread()
		} else {
			f()
		}
		done <- tid
	}()
	return <-done
}

// awaitThreadEnd spins until a thread has ended, a moment later. The system has no event
// for that.
func awaitThreadEnd(tid int) {
	for unix.Tgkill(os.Getpid(), tid, 0) == nil {
		runtime.Gosched()
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
	must.Do(t, parent.Start())
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

// awaitReadable waits until the process of a pidfd has ended.
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
