//go:build unix

package verb

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
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
