//go:build unix

package plugin

import (
	"errors"
	"io/fs"
	"os"
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
