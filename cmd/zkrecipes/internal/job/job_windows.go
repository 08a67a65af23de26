package job

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// On this system an interrupt reaches the command directly, and a process can only be
// killed.

var relayed = []os.Signal{os.Interrupt}

var suspending, continuing []os.Signal

func dropped(os.Signal) bool { return false }
func ends(os.Signal) bool    { return true }

func (r *Relay) suspend() {}

const inherits = false

func (j *Job) arrange(*Lifetime) (started func(), err error) { return func() {}, nil }

// objects has the job object of each command that runs. The system ends all processes in an object
// when its last handle is closed, which it does when this process is killed: the command must not
// continue then.
var objects struct {
	sync.Mutex
	of map[*Job]windows.Handle
}

// launch starts the command suspended, so that it starts no process outside of its job object.
func (j *Job) launch() error {
	object, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return os.NewSyscallError("CreateJobObject", err)
	}
	if err = limit(object, windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE); err == nil {
		j.cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED}
		err = j.cmd.Start()
	}
	if err != nil {
		return errors.Join(err, windows.CloseHandle(object))
	}
	if err := resumeIn(object, uint32(j.cmd.Process.Pid)); err != nil {
		_ = j.cmd.Process.Kill()
		_ = j.cmd.Wait()
		return errors.Join(err, windows.CloseHandle(object))
	}
	objects.Lock()
	defer objects.Unlock()
	if objects.of == nil {
		objects.of = make(map[*Job]windows.Handle)
	}
	objects.of[j] = object
	return nil
}

// ended lets the processes that the command has left behind continue.
func (j *Job) ended() {
	objects.Lock()
	defer objects.Unlock()
	_ = limit(objects.of[j], 0)
	_ = windows.CloseHandle(objects.of[j])
	delete(objects.of, j)
}

func limit(object windows.Handle, flags uint32) error {
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: flags},
	}
	_, err := windows.SetInformationJobObject(object, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return os.NewSyscallError("SetInformationJobObject", err)
}

// resumeIn puts a process that was started suspended into a job object, and resumes it.
func resumeIn(object windows.Handle, pid uint32) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return os.NewSyscallError("OpenProcess", err)
	}
	defer windows.CloseHandle(process)
	if err := windows.AssignProcessToJobObject(object, process); err != nil {
		return os.NewSyscallError("AssignProcessToJobObject", err)
	}
	threads, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return os.NewSyscallError("CreateToolhelp32Snapshot", err)
	}
	defer windows.CloseHandle(threads)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(threads, &entry); err == nil; err = windows.Thread32Next(threads, &entry) {
		if entry.OwnerProcessID == pid { // the process has only one thread yet
			thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
			if err != nil {
				return os.NewSyscallError("OpenThread", err)
			}
			defer windows.CloseHandle(thread)
			_, err = windows.ResumeThread(thread)
			return os.NewSyscallError("ResumeThread", err)
		}
	}
	return os.NewSyscallError("Thread32Next", err)
}

// Pass does nothing.
func (j *Job) Pass(os.Signal) {}

func (j *Job) terminate() { j.Kill() }

// Kill kills the command and the processes that it has started.
func (j *Job) Kill() {
	objects.Lock()
	defer objects.Unlock()
	if object, runs := objects.of[j]; runs {
		_ = windows.TerminateJobObject(object, 1)
	}
}

// ExitCode returns the command's exit code, after Exited.
func (j *Job) ExitCode() int { return j.cmd.ProcessState.ExitCode() }

// ParseSignal returns an error: this system has no signals.
func ParseSignal(string) (os.Signal, error) { return nil, errors.New("this system has no signals") }

// name returns the name of a signal. There is only the interrupt.
func name(s os.Signal) string { return "the signal " + s.String() }

// ExecFlag is the first argument by which this program replaces itself. It cannot on this system.
const ExecFlag = "-exec"

func renamed(program string, argv []string) (string, []string) { return program, argv }

// Exec returns an error: this system cannot replace a process.
func Exec([]string) error { return errors.ErrUnsupported }

// Reap runs main, and returns its exit code.
func Reap(main func() int) int { return main() }
