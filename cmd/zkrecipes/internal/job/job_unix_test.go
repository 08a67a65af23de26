//go:build unix

package job

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// inheritable returns the descriptors of this process that a child inherits.
func inheritable() map[int]bool {
	open := map[int]bool{}
	for fd := range 256 {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			open[fd] = true
		}
	}
	return open
}

// TestCommandInheritsDescriptors: a command inherits the pipes, and descriptors of this process
// such as 3>file.
func TestCommandInheritsDescriptors(t *testing.T) {
	f := must.Get(os.Create(filepath.Join(t.TempDir(), "file")))(t)
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 3) // any process that starts now inherits it
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	life := must.Get(NewLifetime())(t)
	defer life.Close()
	j := must.Get(Start("/bin/sh", []string{"sh", "-c", fmt.Sprintf("echo one >>/dev/fd/%d", fd)}, nil, life))(t)
	<-j.Exited()
	if got, err := os.ReadFile(f.Name()); err != nil || string(got) != "one\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLifetimeLastsAsLongAsProcessesOfTheCommand: it lasts even if the command itself has ended.
func TestLifetimeLastsAsLongAsProcessesOfTheCommand(t *testing.T) {
	life := must.Get(NewLifetime())(t)
	defer life.Close()
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	j := must.Get(startWith("/bin/sh", []string{"sh", "-c", "exec 3<&0; cat <&3 >/dev/null 2>&1 &"}, nil, life, ours))(t)
	<-j.Exited()
	_ = life.writer.Close()
	ended := []unix.PollFd{{Fd: int32(life.Reader.Fd()), Events: unix.POLLIN}}
	if n, err := unix.Poll(ended, 0); err != nil || n > 0 {
		t.Errorf("the lifetime has ended (%v), although a child of the command runs", err)
	}
	_ = theirs.Close()
	_, _ = io.Copy(io.Discard, life.Reader)
}

// TestOtherProcessesDoNotInheritPipes: a plugin that inherited one would wait for its own end.
func TestOtherProcessesDoNotInheritPipes(t *testing.T) {
	life := must.Get(NewLifetime())(t)
	defer life.Close()
	before := inheritable()
	j := &Job{cmd: exec.Command("/bin/sh"), exited: make(chan struct{}), denied: make(chan struct{})}
	close(j.exited) // the command is not started
	started := must.Get(j.arrange(life))(t)
	defer started()
	if len(j.cmd.ExtraFiles) == 0 {
		t.Error("the command inherits nothing")
	}
	for fd := range inheritable() {
		if !before[fd] {
			t.Errorf("any process that starts now inherits descriptor %d", fd)
		}
	}
}

// A command may be ready for a signal before Start returns.
func TestSignalDuringStartReachesCommand(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	r, _ := NewRelay(t.Context())
	defer r.Stop()
	r.beginStart()
	j := must.Get(Start("/bin/sh", []string{"sh", "-c", `trap 'exit 7' USR1; : >"$READY"; while :; do sleep 0.01; done`}, []string{"READY=" + ready}, nil))(t)
	t.Cleanup(func() { j.Kill(); <-j.exited })
	for _, err := os.Stat(ready); err != nil; _, err = os.Stat(ready) {
		select {
		case <-time.After(5 * time.Millisecond): // polls, because it is another process
		case <-t.Context().Done():
			t.Fatal("the command is not ready")
		}
	}
	r.take(syscall.SIGUSR1)
	r.pass(j)
	<-j.exited
	if code := j.ExitCode(); code != 7 {
		t.Errorf("exit code %d; the signal was lost", code)
	}
}

// roleEnv makes the test binary act as a process of TestACommandOfAnotherUserIsDenied.
const roleEnv = "ZKRECIPES_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "tool":
		os.Exit(endAnothers())
	case "command":
		_ = syscall.Setuid(0) // from now on it runs as root in every respect, like a command of sudo
		fmt.Println("runs")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(7)
	}
	leaktest.Main(m)
}

// endAnothers runs as an unprivileged user, and tries to end a command of another user.
func endAnothers() int {
	program := os.Args[1]
	input, theirs, _ := os.Pipe()
	j, err := startWith(program, []string{program}, []string{roleEnv + "=command"}, nil, input)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	said := make([]byte, 4)
	_, _ = io.ReadFull(os.Stdin, said) // the test has seen that it runs
	killing := func(bool) { fmt.Println("killing") }
	left := make(chan struct{})
	close(left)
	fmt.Println("ended:", j.End(time.Minute, killing, left))
	ended := make(chan bool)
	go func() { ended <- j.End(time.Minute, killing, nil) }()
	_ = theirs.Close() // the command ends by itself
	fmt.Println("ended:", <-ended, j.ExitCode())
	<-j.Denied()
	return 0
}

func TestACommandOfAnotherUserIsDenied(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can make a program that belongs to another user")
	}
	dir := t.TempDir()
	must.Do(t, os.Chmod(filepath.Dir(dir), 0o755))
	program := filepath.Join(dir, "program")
	must.Do(t, os.WriteFile(program, must.Get(os.ReadFile(must.Get(os.Executable())(t)))(t), 0o755))
	must.Do(t, os.Chmod(program, os.ModeSetuid|0o755))
	tool := exec.Command("/proc/self/exe", program)
	tool.Env = append(os.Environ(), roleEnv+"=tool")
	tool.Dir, tool.Stderr = dir, os.Stderr
	tool.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	in, out := must.Get(tool.StdinPipe())(t), must.Get(tool.StdoutPipe())(t)
	must.Do(t, tool.Start())
	said := make([]byte, len("runs\n"))
	must.Get(io.ReadFull(out, said))(t)
	must.Get(io.WriteString(in, "seen"))(t)
	rest := string(must.Get(io.ReadAll(out))(t))
	if err := tool.Wait(); err != nil || string(said) != "runs\n" || rest != "ended: false\nended: true 7\n" {
		t.Errorf("%v: %q, then %q", err, said, rest)
	}
}
