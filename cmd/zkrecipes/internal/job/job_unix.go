//go:build unix

package job

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// relayed are the signals that a command may be waiting for. SIGPIPE is caught, because it
// would end this process, and with it the hold, when the reader of stderr has ended. It is
// not ignored, because the command would inherit that.
var relayed = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE,
}

func dropped(s os.Signal) bool { return s == syscall.SIGPIPE }

// ends reports whether a signal means that the process should end.
func ends(s os.Signal) bool { return s != syscall.SIGUSR1 && s != syscall.SIGUSR2 }

// arrange gives the command a process group of its own, so that all that it
// starts can be ended with it. Not at a terminal: there the group would be in
// the background, and could not read what is typed. started is to be called after the
// start.
func (j *Job) arrange(life *Lifetime) (started func(), err error) {
	j.alone = !atTerminal()
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: j.alone}
	dieWithParent(j.cmd.SysProcAttr)
	var pipes []*os.File
	if life != nil {
		pipes = append(pipes, life.writer)
	}
	if j.alone {
		if theirs := j.follow(); theirs != nil {
			defer theirs.Close()
			pipes = append(pipes, theirs)
		}
	}
	return j.inherit(pipes...)
}

// follow returns the writing end of a pipe for the command, and closes gone at the end of
// all processes that the command starts. A shell exits at once on TERM, while the process
// that it waited for still runs. This process cannot wait for a process that is not its
// child. But all of them inherit a pipe, which closes when the last of them has ended.
func (j *Job) follow() (theirs *os.File) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil // gone is exited then
	}
	j.gone = make(chan struct{})
	go func() { // until then; a daemon may live longer than this process
		defer close(j.gone)
		_, _ = io.Copy(io.Discard, ours)
		<-j.exited // the command may have closed a descriptor that it does not know
		_ = ours.Close()
	}()
	return theirs
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
func (j *Job) pass(s os.Signal) {
	if !j.alone && (s == syscall.SIGINT || s == syscall.SIGQUIT) {
		return
	}
	j.signal(s.(syscall.Signal))
}

func (j *Job) terminate() { j.signal(syscall.SIGTERM) }

// Kill kills the command, and the rest of its process group.
func (j *Job) Kill() { j.signal(syscall.SIGKILL) }

func (j *Job) signal(s syscall.Signal) {
	select {
	case <-j.gone: // its number may be another's by now
		return
	default:
	}
	j.send(s)
	if ends(s) { // a process that is stopped, as by reading from a terminal in the background, gets it only then
		j.send(syscall.SIGCONT)
	}
}

func (j *Job) send(s syscall.Signal) {
	if !j.alone {
		_ = j.cmd.Process.Signal(s)
		return
	}
	if s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGQUIT {
		j.told.Store(true)
	}
	_ = syscall.Kill(-j.cmd.Process.Pid, s)
}

// ExitCode is what a shell would say of a command that has exited: 128 and the
// number of the signal that has ended it, or its own code.
func (j *Job) ExitCode() int {
	if st, ok := j.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return ExitSignal + int(st.Signal())
	}
	return j.cmd.ProcessState.ExitCode()
}

// name is what people call a signal: os has "interrupt" for SIGINT.
func name(s os.Signal) string {
	if number, ok := s.(syscall.Signal); ok {
		return unix.SignalName(number)
	}
	return s.String()
}
