//go:build unix

package job

import (
	"os"

	"golang.org/x/sys/unix"
)

// inherits reports whether a process inherits descriptors.
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
