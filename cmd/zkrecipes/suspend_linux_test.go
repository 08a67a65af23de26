package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// suspended is a zkrecipes that runs a command, which appends to the file ticks.
type suspended struct {
	*testing.T
	dir    string
	server *zkserver.Server
	tool   *exec.Cmd
	stderr bytes.Buffer
}

const ticks = `echo $PPID >tool; echo $$ >command; while :; do echo; done >>ticks`

// newSuspended starts zkrecipes with arguments that contain the command.
func newSuspended(t *testing.T, attributes *syscall.SysProcAttr, args ...string) *suspended {
	s := &suspended{T: t, dir: t.TempDir(), server: must.Get(zkserver.Listen(zkserver.Config{MaxSessionTimeout: time.Hour}))(t)}
	t.Cleanup(func() { _ = s.server.Close() })
	s.tool = s.zkrecipes(args...)
	s.tool.Stderr, s.tool.SysProcAttr = &s.stderr, attributes
	must.Do(t, s.tool.Start())
	t.Cleanup(func() {
		_ = s.tool.Process.Kill() // its command dies with it
		_ = s.tool.Wait()
	})
	return s
}

func (s *suspended) zkrecipes(args ...string) *exec.Cmd {
	cmd := exec.Command("zkrecipes", args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "ZKRECIPES_SERVERS="+s.server.Addr(), "ZKRECIPES_SESSION_TIMEOUT=1h", "ZKRECIPES_LOG_LEVEL=error", "GORACE="+quickExit, "HOME="+s.dir)
	return cmd
}

func (s *suspended) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(s.dir, name))
	return string(text)
}

func (s *suspended) await(what string, happened func() bool) {
	s.Helper()
	for end := time.Now().Add(watchdog.Patience); !happened(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("it did not happen: %s; stderr: %s", what, s.stderr.String())
		}
	}
}

// works waits until the command has done work after this call.
func (s *suspended) works() {
	s.Helper()
	before := len(s.read("ticks"))
	s.await("the command works", func() bool { return len(s.read("ticks")) > before })
}

func (s *suspended) signal(signal syscall.Signal) {
	s.Helper()
	must.Do(s.T, s.tool.Process.Signal(signal))
}

// stopped reports whether a process is stopped by a signal.
func stopped(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "T")
}

// suspend sends SIGTSTP until zkrecipes and the command are stopped. It repeats that, because
// zkrecipes drops a SIGTSTP that it receives right after a SIGCONT.
func (s *suspended) suspend(send func()) {
	s.Helper()
	tool := must.Get(strconv.Atoi(strings.TrimSpace(s.read("tool"))))(s.T)
	command := must.Get(strconv.Atoi(strings.TrimSpace(s.read("command"))))(s.T)
	var sent time.Time
	s.await("zkrecipes and its command are stopped", func() bool {
		if time.Since(sent) > time.Second {
			sent = time.Now()
			send()
		}
		return stopped(tool) && stopped(command)
	})
}

func (s *suspended) sigtstp() { s.Helper(); s.signal(syscall.SIGTSTP) }

// TestASuspendedToolSuspendsItsCommand: it does so even if the command ignores SIGTSTP. When
// zkrecipes continues, the command continues too.
func TestASuspendedToolSuspendsItsCommand(t *testing.T) {
	for name, args := range map[string][]string{
		"lock":         {"lock", "/l", "--", "sh", "-c", ticks},
		"ignores TSTP": {"lock", "/l", "--", "sh", "-c", "trap '' TSTP; " + ticks},
		"queue work":   {"queue", "work", "/q", "--", "sh", "-c", ticks},
		"shares":       {"shares", "-n", "2", "/s", "--", "sh", "-c", ticks},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSuspended(t, &syscall.SysProcAttr{Setpgid: true}, args...)
			if name == "queue work" {
				must.Do(t, s.zkrecipes("queue", "put", "/q", "element").Run())
			}
			s.works()
			for range 2 {
				s.suspend(s.sigtstp)
				s.signal(syscall.SIGCONT)
				s.works()
			}
			s.signal(syscall.SIGTERM)
			_ = s.tool.Wait()
			if code := s.tool.ProcessState.ExitCode(); code != 143 && name != "queue work" {
				t.Errorf("exit code %d: %s", code, s.stderr.String())
			}
		})
	}
}

// TestACommandWhoseHoldWasLostIsNotContinued: zkrecipes ends it, and it never works beside the
// next holder.
func TestACommandWhoseHoldWasLostIsNotContinued(t *testing.T) {
	t.Parallel()
	s := newSuspended(t, &syscall.SysProcAttr{Setpgid: true}, "lock", "-session-timeout", "1s", "/l", "--", "sh", "-c", ticks)
	s.works()
	s.suspend(s.sigtstp)
	must.Do(t, s.zkrecipes("lock", "/l", "--", "true").Run()) // when the session has expired
	before := len(s.read("ticks"))
	s.signal(syscall.SIGCONT)
	_ = s.tool.Wait()
	if code := s.tool.ProcessState.ExitCode(); code != 123 {
		t.Errorf("exit code %d: %s", code, s.stderr.String())
	}
	if after := len(s.read("ticks")); after > before {
		t.Errorf("the command has worked %d times after another client had the lock", after-before)
	}
}

// TestContinueRightAfterSuspend: whichever signal is handled first, nothing stays stopped.
func TestContinueRightAfterSuspend(t *testing.T) {
	t.Parallel()
	s := newSuspended(t, &syscall.SysProcAttr{Setpgid: true}, "lock", "/l", "--", "sh", "-c", ticks)
	s.works()
	for range 20 {
		s.signal(syscall.SIGTSTP)
		s.signal(syscall.SIGCONT)
		s.works()
	}
	s.await("the command is continued", func() bool { s.works(); return !stopped(s.tool.Process.Pid) })
}

// TestAToolThatNoShellCanContinueRunsOn: tool and command continue, because the system does not
// stop a process in an orphaned process group.
func TestAToolThatNoShellCanContinueRunsOn(t *testing.T) {
	t.Parallel()
	const command = `trap ': >suspended' TSTP; trap ': >after' USR1; ` + ticks
	s := newSuspended(t, &syscall.SysProcAttr{Setsid: true}, "lock", "/l", "--", "sh", "-c", command)
	s.works()
	s.signal(syscall.SIGTSTP)
	s.await("the command gets SIGTSTP", func() bool { _, err := os.Stat(filepath.Join(s.dir, "suspended")); return err == nil })
	s.signal(syscall.SIGUSR1) // handled after SIGTSTP
	s.await("the next signal is passed on", func() bool { _, err := os.Stat(filepath.Join(s.dir, "after")); return err == nil })
	s.works()
}

// TestCtrlZInAShell stops zkrecipes and its command, and fg continues both.
func TestCtrlZInAShell(t *testing.T) {
	t.Parallel()
	s := &suspended{T: t, dir: t.TempDir(), server: must.Get(zkserver.Listen(zkserver.Config{MaxSessionTimeout: time.Hour}))(t)}
	t.Cleanup(func() { _ = s.server.Close() })
	s.tool = exec.Command("sh", "-i")
	s.tool.Dir, s.tool.Env = s.dir, append(s.zkrecipes().Env, "PS1=$ ", "TERM=dumb")
	terminal := must.Get(pty.Start(s.tool))(t)
	var seen terminalOutput
	read := make(chan struct{})
	go func() { // until the shell has ended
		defer close(read)
		_, _ = io.Copy(&seen, terminal)
	}()
	t.Cleanup(func() {
		_ = s.tool.Process.Kill()
		_ = s.tool.Wait()
		_ = terminal.Close()
		<-read
	})
	write := func(text string) { t.Helper(); must.Get(terminal.WriteString(text))(t) }
	write("zkrecipes lock /l -- sh -c 'echo $PPID >tool; echo $$ >command; until test -e stop; do echo; done >>ticks'\n")
	s.works()
	for range 2 {
		s.suspend(func() { write("\x1a") })
		write("fg; echo $? >ended\n")
		s.works()
	}
	must.Do(t, os.WriteFile(filepath.Join(s.dir, "stop"), nil, 0o644))
	s.await("zkrecipes returns the command's exit code", func() bool { return strings.TrimSpace(s.read("ended")) == "0" })
}
