//go:build unix

package verb

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ControlSupported reports whether RequestUpgrade works on this system.
const ControlSupported = true

// private reports whether only this user can enter a directory.
func private(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && info.Mode().Perm()&0o077 == 0 && int(stat.Uid) == os.Geteuid()
}

// lockDirectory locks a directory until Close. Other processes can do so at the same time. While
// one does, systemd-tmpfiles removes neither the directory nor what it contains.
func lockDirectory(dir string) (io.Closer, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// closed reports whether f was closed when this process started, for example by >&-. Go's
// runtime then opens the null device in its place, for reading and writing. A shell opens it
// for only one of them (>/dev/null). For a program that opens it for both, closed also
// returns true.
func closed(f *os.File) bool {
	var is, null unix.Stat_t
	if unix.Fstat(int(f.Fd()), &is) != nil || unix.Stat(os.DevNull, &null) != nil {
		return true
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err != nil || is.Mode&unix.S_IFMT == unix.S_IFCHR && is.Rdev == null.Rdev && flags&unix.O_ACCMODE == unix.O_RDWR
}

// whileRead returns a context that ends, with the cause EPIPE, when the reader of the pipe f
// (such as head) has exited. The caller must call stop.
func whileRead(ctx context.Context, f *os.File) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ours, theirs, err := os.Pipe()
	if err != nil {
		return ctx, func() { cancel(nil) } // the next write notices it
	}
	done := make(chan struct{})
	go func() { // until stop
		defer close(done)
		fds := []unix.PollFd{{Fd: int32(f.Fd())}, {Fd: int32(ours.Fd())}}
		for {
			_, err := unix.Poll(fds, -1)
			switch {
			case fds[1].Revents != 0 || err != nil && err != unix.EINTR:
				return
			case fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
				cancel(syscall.EPIPE)
				return
			case fds[0].Revents != 0: // such as POLLNVAL
				return
			}
		}
	}()
	return ctx, func() {
		_ = theirs.Close()
		<-done
		_ = ours.Close()
		cancel(nil)
	}
}

// keepOwner gives a file the owner and the group of another: under sudo it belongs to the user.
func keepOwner(f *os.File, of fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	is, want := now.Sys().(*syscall.Stat_t), of.Sys().(*syscall.Stat_t)
	if is.Uid == want.Uid && is.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}
