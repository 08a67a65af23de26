package job

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"
)

// Job is a command that runs. It has our stdout and stderr.
type Job struct {
	cmd    *exec.Cmd
	alone  bool          // it has a process group of its own
	exited chan struct{} // closed when it was waited for
	gone   chan struct{} // closed when nothing of a group of its own is left; else it is exited
	told   atomic.Bool   // the group was told to end
}

// Start starts program with argv and the variables env, which are added to this
// process's. The command has this process's stdin, and life, which may be nil. A goroutine
// waits for its end. After an error nothing runs.
func Start(program string, argv, env []string, life *Lifetime) (*Job, error) {
	return StartWith(program, argv, env, life, os.Stdin)
}

// StartWith is Start with another stdin. What the command does not read is dropped.
func StartWith(program string, argv, env []string, life *Lifetime, stdin io.Reader) (*Job, error) {
	j := &Job{cmd: exec.Command(program, argv[1:]...), exited: make(chan struct{})}
	j.cmd.Args[0] = argv[0]
	j.cmd.Env = append(os.Environ(), env...)
	j.gone = j.exited
	j.cmd.Stdin, j.cmd.Stdout, j.cmd.Stderr = stdin, os.Stdout, os.Stderr
	j.cmd.WaitDelay = time.Second // for what the command has left unread, and a child keeps open
	started := make(chan error)
	go func() { // until the command has ended
		// On Linux the command is to die with its parent, and to the kernel
		// that is the thread which started it.
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

// Pass passes a signal on.
func (j *Job) Pass(s os.Signal) { j.pass(s) }

// Exited is closed when the command has ended.
func (j *Job) Exited() <-chan struct{} { return j.exited }

// Gone is closed when the command and all that it has started have ended. What has
// closed the descriptors that it inherited is not waited for. Without a process
// group of its own it is as Exited.
func (j *Job) Gone() <-chan struct{} { return j.gone }

// Told reports whether a signal that was passed on told the whole group to end.
func (j *Job) Told() bool { return j.told.Load() }

// End sends TERM to the job, and waits as Await does.
func (j *Job) End(grace time.Duration, killing func(exited bool)) {
	j.terminate()
	j.Await(grace, killing)
}

// Await waits until all processes of the job have ended. After grace it calls killing, with
// whether the command itself has ended, and kills the others.
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
