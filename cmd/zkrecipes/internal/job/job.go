// Package job runs a command as a shell runs a job, and passes signals on to it.
//
//  1. [NewRelay] receives the signals of this process. The first one ends its context.
//  2. [Relay.Start] starts the command. From now on the relay passes signals on to it.
//  3. [Job.Exited] closes when the command has ended, [Job.Gone] when all processes that it
//     has started have ended. [Job.End] ends them early.
//  4. After the command, the next signal ends the context of [Relay.Interruptible].
//     [Relay.Ended] reports whether a signal has ended the command. The next command begins
//     with step 2.
//
// To run several commands at a time, use [Relay.StartBeside].
//
// A job has its own process group, so that a signal reaches all processes that the command
// has started. In the foreground of a terminal it has none, because a background group cannot
// read from the terminal. Windows has no process groups: there a job has a job object, and a
// command can only be killed. No test runs on Windows.
package job

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Job is a running command. It has the stdout and stderr of this process.
type Job struct {
	cmd      *exec.Cmd
	ownGroup bool          // it has its own process group
	exited   chan struct{} // closed when the command has ended
	gone     chan struct{} // closed when all processes of its group have ended; without a group it is exited
	signaled atomic.Bool   // a signal that ends processes was sent to the group
	ending   atomic.Bool   // End was called
	held     func() bool   // whether to continue it after a stop

	denied  chan struct{} // closed when it could not be signalled
	denying sync.Once
}

// Start starts program with argv. env is added to the environment of this process. The
// command has the stdin of this process and inherits life, which may be nil. A goroutine
// waits for its end. After an error no process runs.
func Start(program string, argv, env []string, life *Lifetime) (*Job, error) {
	return startWith(program, argv, env, life, os.Stdin)
}

// startWith is Start with another stdin. Data that the command does not read is dropped.
func startWith(program string, argv, env []string, life *Lifetime, stdin io.Reader) (*Job, error) {
	program, argv = renamed(program, argv)
	j := &Job{cmd: exec.Command(program, argv[1:]...), exited: make(chan struct{}), denied: make(chan struct{})}
	j.cmd.Args[0] = argv[0]
	j.cmd.Env = append(os.Environ(), env...)
	j.gone = j.exited
	j.cmd.Stdin, j.cmd.Stdout, j.cmd.Stderr = stdin, os.Stdout, os.Stderr
	j.cmd.WaitDelay = time.Second // a child may keep stdin open and not read it
	started := make(chan error)
	go func() { // until the command has ended
		// On Linux the command is killed with its parent (dieWithParent). For the kernel,
		// the parent is the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(j.exited)
		err := j.start(life)
		started <- err
		if err == nil {
			_ = j.cmd.Wait()
			j.ended()
		}
	}()
	return j, <-started
}

func (j *Job) start(life *Lifetime) error {
	started, err := j.arrange(life)
	if err != nil {
		return err
	}
	defer started()
	return j.launch()
}

// Exited is closed when the command has ended.
func (j *Job) Exited() <-chan struct{} { return j.exited }

// Gone is closed when the command and all processes that it has started have ended. It does
// not wait for a process that has closed the descriptors that it inherited. For a job
// without its own process group, Gone is Exited.
func (j *Job) Gone() <-chan struct{} { return j.gone }

// Denied is closed when a signal could not be sent to any process of the job, because they belong
// to another user. For example, sudo changes the user of its command.
func (j *Job) Denied() <-chan struct{} { return j.denied }

func (j *Job) deny() { j.denying.Do(func() { close(j.denied) }) }

// Signaled reports whether TERM, INT or QUIT was sent to the whole process group.
func (j *Job) Signaled() bool { return j.signaled.Load() }

// End sends TERM to the job, and then waits like Await.
func (j *Job) End(grace time.Duration, killing func(exited bool), leave <-chan struct{}) (ended bool) {
	j.ending.Store(true)
	j.terminate()
	return j.Await(grace, killing, leave)
}

// Await waits until all processes of the job have ended, and returns true. After grace it calls
// killing and kills the rest. exited is whether the command itself has ended. A job that could not
// be signalled cannot be killed either. For such a job Await returns false if leave is closed
// before the command has ended.
func (j *Job) Await(grace time.Duration, killing func(exited bool), leave <-chan struct{}) (ended bool) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-j.gone:
		return true
	case <-j.denied:
	case <-timer.C:
		exited := false
		select {
		case <-j.exited:
			exited = true
		default:
		}
		killing(exited)
		j.Kill()
	}
	select {
	case <-j.exited:
		return true
	case <-j.denied:
	}
	select {
	case <-j.exited:
		return true
	case <-leave:
		return false
	}
}

// Lifetime is a pipe that commands and the processes that they start inherit. Its Reader
// reports the end of file when this process and all of these have exited or closed their
// copies. A nil Lifetime has no pipe.
type Lifetime struct {
	Reader *os.File
	writer *os.File
}

// NewLifetime returns a Lifetime for commands that start later, or nil on systems where a
// process inherits no descriptors.
func NewLifetime() (*Lifetime, error) {
	if !inherits {
		return nil, nil
	}
	r, w, err := os.Pipe()
	return &Lifetime{r, w}, err
}

// Close closes this process's ends.
func (l *Lifetime) Close() {
	if l != nil {
		_, _ = l.Reader.Close(), l.writer.Close()
	}
}
