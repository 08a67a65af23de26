package job

import (
	"io"
	"os"
	"os/exec"
	"runtime"
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
}

// Start starts program with argv. env is added to the environment of this process. The
// command has the stdin of this process and inherits life, which may be nil. A goroutine
// waits for its end. After an error no process runs.
func Start(program string, argv, env []string, life *Lifetime) (*Job, error) {
	return StartWith(program, argv, env, life, os.Stdin)
}

// StartWith is Start with another stdin. Data that the command does not read is dropped.
func StartWith(program string, argv, env []string, life *Lifetime, stdin io.Reader) (*Job, error) {
	j := &Job{cmd: exec.Command(program, argv[1:]...), exited: make(chan struct{})}
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
	return j.cmd.Start()
}

// Exited is closed when the command has ended.
func (j *Job) Exited() <-chan struct{} { return j.exited }

// Gone is closed when the command and all processes that it has started have ended. It does
// not wait for a process that has closed the descriptors that it inherited. For a job
// without its own process group, Gone is Exited.
func (j *Job) Gone() <-chan struct{} { return j.gone }

// Signaled reports whether TERM, INT or QUIT was sent to the whole process group.
func (j *Job) Signaled() bool { return j.signaled.Load() }

// End sends TERM to the job, and then waits like Await.
func (j *Job) End(grace time.Duration, killing func(exited bool)) {
	j.terminate()
	j.Await(grace, killing)
}

// Await waits until all processes of the job have ended. After grace it calls killing and
// kills the rest. exited is whether the command itself has ended.
func (j *Job) Await(grace time.Duration, killing func(exited bool)) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-j.gone:
	case <-timer.C:
		exited := false
		select {
		case <-j.exited:
			exited = true
		default:
		}
		killing(exited)
		j.Kill()
		<-j.exited
	}
}
