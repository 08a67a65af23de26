//go:build unix

package job

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

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
