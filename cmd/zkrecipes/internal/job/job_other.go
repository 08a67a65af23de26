//go:build !unix

package job

import "os"

// On this system an interrupt reaches the command directly, and a process can only be
// killed.

var relayed = []os.Signal{os.Interrupt}

var suspending, continuing []os.Signal

func dropped(os.Signal) bool { return false }
func ends(os.Signal) bool    { return true }

func (r *Relay) suspend() {}

const inherits = false

func (j *Job) arrange(*Lifetime) (started func(), err error) { return func() {}, nil }

// Pass does nothing.
func (j *Job) Pass(os.Signal) {}

func (j *Job) terminate() { j.Kill() }

// Kill kills the command.
func (j *Job) Kill() { _ = j.cmd.Process.Kill() }

// ExitCode returns the command's exit code, after Exited.
func (j *Job) ExitCode() int { return j.cmd.ProcessState.ExitCode() }

// name returns the name of a signal. There is only the interrupt.
func name(s os.Signal) string { return "the signal " + s.String() }
