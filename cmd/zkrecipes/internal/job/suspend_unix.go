//go:build unix

package job

import (
	"maps"
	"os"
	"slices"
	"syscall"
	"time"
)

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
