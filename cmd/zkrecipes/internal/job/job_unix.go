//go:build unix

package job

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// relayed are the signals that are passed on, and SIGPIPE. SIGPIPE is caught and dropped,
// because it would end this process and the hold when the reader of stderr exits. It is not
// ignored, because the command would inherit that.
//
// The other signals that a process can catch are not relayed, because they concern this process
// only: its children (CHLD), its stop (TSTP, TTIN, TTOU, CONT), Go's scheduler and profiler (URG,
// PROF), its limits (XCPU, XFSZ), and its crash (ABRT, SEGV and the like).
var relayed = append([]os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGALRM, syscall.SIGVTALRM, syscall.SIGIO,
	syscall.SIGPIPE,
}, relayedHere()...)

func dropped(s os.Signal) bool { return s == syscall.SIGPIPE }

func ends(s os.Signal) bool {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGKILL:
		return true
	}
	return false
}

// arrange gives the command its own process group, so that all processes that it starts can
// be ended with it. At a terminal it does not, because the group would be in the background
// and could not read the input. The caller must call started after the start.
func (j *Job) arrange(life *Lifetime) (started func(), err error) {
	j.ownGroup = !atTerminal()
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: j.ownGroup}
	dieWithParent(j.cmd.SysProcAttr)
	var pipes []*os.File
	if life != nil {
		pipes = append(pipes, life.writer)
	}
	if j.ownGroup {
		if theirs := j.follow(); theirs != nil {
			defer theirs.Close()
			pipes = append(pipes, theirs)
		}
	}
	return j.inherit(pipes...)
}

func (j *Job) launch() error { return j.cmd.Start() }

func (j *Job) ended() {}

// follow returns the write end of a pipe for the command, and closes gone when all processes
// that inherit the pipe have ended. That is needed because a shell exits at once on TERM,
// while the process that it waited for still runs. A process can wait only for its children,
// but the pipe closes when the last of these processes has ended.
func (j *Job) follow() (theirs *os.File) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil // gone remains exited
	}
	j.gone = make(chan struct{})
	go func() { // until the pipe closes; a daemon may outlive this process
		defer close(j.gone)
		_, _ = io.Copy(io.Discard, ours)
		<-j.exited // the command may have closed its inherited descriptors
		_ = ours.Close()
	}()
	return theirs
}

// atTerminal reports whether this process group is in the foreground of a terminal.
func atTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// Pass passes a signal on. Signals of the terminal have already reached the command, and to
// many programs a second Ctrl-C means something else.
func (j *Job) Pass(s os.Signal) {
	if !j.ownGroup && typed(s) {
		return
	}
	j.signal(s.(syscall.Signal))
}

// typed reports whether a terminal sends a signal to all processes in its foreground.
func typed(s os.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGQUIT || s == syscall.SIGWINCH
}

func (j *Job) terminate() { j.signal(syscall.SIGTERM) }

// Kill kills the command, and the rest of its process group.
func (j *Job) Kill() { j.signal(syscall.SIGKILL) }

func (j *Job) signal(s syscall.Signal) {
	select {
	case <-j.gone: // another process may have the id now
		return
	default:
	}
	j.send(s)
	if ends(s) { // a stopped process, such as a background process that reads from a terminal, receives s only after CONT
		j.send(syscall.SIGCONT)
	}
}

func (j *Job) send(s syscall.Signal) {
	if !j.ownGroup {
		if errors.Is(j.cmd.Process.Signal(s), syscall.EPERM) {
			j.deny()
		}
		return
	}
	if s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGQUIT {
		j.signaled.Store(true)
	}
	if syscall.Kill(-j.cmd.Process.Pid, s) == syscall.EPERM {
		j.deny()
	}
}

// ExitCode returns the exit code as a shell does: 128 plus the number of the signal that
// ended the command, or the command's own code.
func (j *Job) ExitCode() int {
	if st, ok := j.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return ExitSignal + int(st.Signal())
	}
	return j.cmd.ProcessState.ExitCode()
}

// ParseSignal returns the signal with a name such as USR1 or SIGUSR1.
func ParseSignal(name string) (os.Signal, error) {
	number := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
	if number == 0 {
		return nil, fmt.Errorf("there is no signal %q; give a name such as USR1", name)
	}
	return number, nil
}

// name returns the name of a signal, such as SIGINT. Its String method returns "interrupt".
func name(s os.Signal) string {
	if number, ok := s.(syscall.Signal); ok {
		if name := unix.SignalName(number); name != "" {
			return name
		}
	}
	return s.String() // such as "signal 36"
}

const inherits = true

// firstDescriptor is the lowest number for a passed file. Shells leave those below 10 to
// scripts.
const firstDescriptor = 10

// inherit passes files to the command, at numbers that are free in this process, because the
// command also inherits other descriptors of this process, such as 3>file. In this process
// the files are close-on-exec. Otherwise a plugin that starts at the same time would inherit
// them, and wait for itself.
//
// The caller must call started, which closes the copies, after the start of the command.
//
// os/exec numbers ExtraFiles from 3, so they include all descriptors in between.
func (j *Job) inherit(files ...*os.File) (started func(), err error) {
	var given []*os.File
	started = func() {
		for _, f := range given {
			_ = f.Close()
		}
	}
	give := func(from, at int) (*os.File, error) {
		fd, err := unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, at)
		if err != nil {
			return nil, err
		}
		f := os.NewFile(uintptr(fd), "inherited")
		given = append(given, f)
		return f, nil
	}
	extra := map[int]*os.File{} // by their numbers in the command
	last := 0
	for _, f := range files {
		copied, err := give(int(f.Fd()), firstDescriptor)
		if err != nil {
			started()
			return nil, err
		}
		last = max(last, int(copied.Fd()))
		extra[int(copied.Fd())] = copied
	}
	for fd := 3; fd <= last; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if extra[fd] == nil && err == nil && flags&unix.FD_CLOEXEC == 0 {
			if extra[fd], err = give(fd, last+1); err != nil {
				started()
				return nil, err
			}
		}
		j.cmd.ExtraFiles = append(j.cmd.ExtraFiles, extra[fd]) // nil is closed in the command, as on exec
	}
	return started, nil
}

// ExecFlag is the first argument by which this program replaces itself: see [Exec].
const ExecFlag = "-exec"

// naming lists the variables in which systemd names the process for which its sockets or its
// watchdog are meant. Any other process ignores them.
var naming = []string{"LISTEN_PID=", "WATCHDOG_PID="}

// renamed returns what to start so that program gets systemd's variables with its own process id.
// That id is only known once the process runs. So this program is started, sets the variables, and
// replaces itself by program.
func renamed(program string, argv []string) (string, []string) {
	ours := strconv.Itoa(os.Getpid())
	named := slices.ContainsFunc(naming, func(v string) bool { return slices.Contains(os.Environ(), v+ours) })
	self, err := os.Executable()
	if !named || err != nil {
		return program, argv
	}
	return self, append([]string{os.Args[0], ExecFlag, program}, argv...)
}

// Exec replaces this process by the program args[0] with the arguments args[1:], the first of
// which is its name. It changes systemd's variables that name its parent, which has called renamed,
// so that they name this process. It returns only an error.
func Exec(args []string) error {
	parent := strconv.Itoa(os.Getppid())
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "LISTEN_PIDFDID=") // this variable names the process too, and cannot be changed
	})
	for i, v := range env {
		for _, name := range naming {
			if v == name+parent {
				env[i] = name + strconv.Itoa(os.Getpid())
			}
		}
	}
	return &os.PathError{Op: "exec", Path: args[0], Err: syscall.Exec(args[0], args[1:], env)}
}

// suspending and continuing are the signals that stop a process, if it does not ignore them, and
// continue it.
var suspending, continuing = []os.Signal{syscall.SIGTSTP}, []os.Signal{syscall.SIGCONT}

// stopMoment is how long commands have to prepare for their stop, for example to restore the
// terminal.
const stopMoment = 100 * time.Millisecond

// suspend stops the commands, and then this process. By default SIGTSTP would stop only this
// process, and the command would continue after ZooKeeper has granted its hold to another
// client. A command that ignores or handles SIGTSTP gets SIGSTOP, for the same reason.
//
// When this process continues, the commands that are held, and those that were being ended,
// continue too. The others stay stopped until their callers end them.
//
// A SIGCONT can arrive before this process has stopped, and the runtime does not report in
// which order signals arrived. So suspend stops nothing if a SIGCONT arrives at about the same
// time. Otherwise this process could wait forever for another SIGCONT.
func (r *Relay) suspend() {
	r.starts.Lock()
	defer r.starts.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	since := time.Now().Add(-stopMoment)
	jobs := slices.Collect(maps.Keys(r.beside))
	if r.job != nil {
		jobs = append(jobs, r.job)
	}
	for _, j := range jobs {
		j.signal(syscall.SIGTSTP)
	}
	if len(jobs) > 0 {
		time.Sleep(stopMoment)
	}
	if r.continued.Load() < since.UnixNano() {
		for _, j := range jobs {
			j.signal(syscall.SIGSTOP)
		}
		stopProcess()
	}
	for _, j := range jobs {
		if j.ending.Load() || j.held() {
			j.signal(syscall.SIGCONT)
		}
	}
}
