//go:build unix

package verb

import (
	"io/fs"
	"os"
	"syscall"
)

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
