//go:build unix

package plugin

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
)

// inherited opens the reading end of a pipe that this process has inherited.
func inherited(number string) (*os.File, error) {
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 3 {
		return nil, errors.New("not a number from 3")
	}
	if _, err := syscall.Read(fd, nil); err != nil { // the descriptor is closed, or it is the writing end
		return nil, err
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), handshake.LifetimeEnv)
	if info, err := f.Stat(); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return nil, errors.New("not a pipe")
	}
	return f, nil
}

// terminations returns a channel that receives SIGTERM. It makes the process ignore the
// signals that are meant for its host.
//
// SIGPIPE is one of them. When the host dies, stderr becomes a pipe without a reader. Go's
// runtime kills a process that writes to such a pipe, before it has closed its sessions.
func terminations() <-chan os.Signal {
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP, syscall.SIGINT)
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	return terminated
}
