//go:build unix

package main

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// relayed are the signals that a command may be waiting for. SIGPIPE is taken
// so that it does not end this process, and with it the hold, when somebody
// stops reading stderr; it is not ignored, because a command would inherit that.
var relayed = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE,
}

func dropped(s os.Signal) bool { return s == syscall.SIGPIPE }

// ends reports whether a signal means that the process should end.
func ends(s os.Signal) bool { return s != syscall.SIGUSR1 && s != syscall.SIGUSR2 }

// arrange gives the command a process group of its own, so that all that it
// starts can be ended with it. Not at a terminal: there the group would be in
// the background, and could not read what is typed.
func (c *child) arrange() {
	c.alone = !atTerminal()
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: c.alone}
	dieWithParent(c.cmd.SysProcAttr)
	if c.alone {
		c.follow()
	}
}

// follow has gone tell of the end of all that the command starts. A shell that is
// told to end does so at once, and what it was waiting for is still at work. All
// of them inherit a pipe that ends with the last of them: of a process group that is
// no longer one's child nothing else tells. Its descriptor is one that is free here,
// for the command inherits from this process too, as by 3>file, and not one of the
// first ten, which shells leave to scripts. Nothing else is started meanwhile that
// could inherit it.
func (c *child) follow() {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return // the command itself has to do
	}
	defer theirs.Close()
	fd, err := unix.FcntlInt(theirs.Fd(), unix.F_DUPFD, 10)
	if err != nil {
		_ = ours.Close()
		return
	}
	c.life = os.NewFile(uintptr(fd), "life")
	c.gone = make(chan struct{})
	go func() { // until then; a daemon may outlive this process
		defer close(c.gone)
		_, _ = io.Copy(io.Discard, ours)
		<-c.exited // it may have closed what it does not know
		_ = ours.Close()
	}()
}

// atTerminal reports whether this process group is in the foreground of a
// terminal.
func atTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// pass passes a signal on. What is typed at the terminal has reached the
// command already: a second Ctrl-C means something else to many programs.
func (c *child) pass(s os.Signal) {
	if !c.alone && (s == syscall.SIGINT || s == syscall.SIGQUIT) {
		return
	}
	c.signal(s.(syscall.Signal))
}

func (c *child) terminate() { c.signal(syscall.SIGTERM) }
func (c *child) kill()      { c.signal(syscall.SIGKILL) }

func (c *child) signal(s syscall.Signal) {
	select {
	case <-c.gone: // its number may be another's by now
		return
	default:
	}
	c.send(s)
	if ends(s) { // one that is stopped, as by reading from a terminal in the background, does not hear it
		c.send(syscall.SIGCONT)
	}
}

func (c *child) send(s syscall.Signal) {
	if !c.alone {
		_ = c.cmd.Process.Signal(s)
		return
	}
	if s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGQUIT {
		c.told.Store(true)
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, s)
}

// exitCode is what a shell would say.
func (c *child) exitCode() int {
	if st, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return exitSignal + int(st.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}
