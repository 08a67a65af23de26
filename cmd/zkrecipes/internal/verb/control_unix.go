//go:build unix

package verb

import (
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
