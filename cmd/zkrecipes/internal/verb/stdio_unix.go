//go:build unix

package verb

import (
	"context"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

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
