//go:build !unix

package job

import "os"

// Here an interrupt reaches the command without our help, and a process can
// only be killed.

var relayed = []os.Signal{os.Interrupt}

func dropped(os.Signal) bool { return false }
func ends(os.Signal) bool    { return true }

const inherits = false

func (j *Job) arrange(*Lifetime) (started func(), err error) { return func() {}, nil }

func (j *Job) pass(os.Signal) {}
func (j *Job) terminate()     { j.Kill() }

// Kill kills the command.
func (j *Job) Kill() { _ = j.cmd.Process.Kill() }

// ExitCode is the command's, when it has exited.
func (j *Job) ExitCode() int { return j.cmd.ProcessState.ExitCode() }

// name is what people call a signal. Here there is only the interrupt.
func name(s os.Signal) string { return "the signal " + s.String() }
