package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrUnsafe: somebody else could have put the plugin where it is, or could
// change it: the executable or a directory on its way is writable for everybody,
// or it lies below the working directory and belongs to a stranger. It was not
// started.
var ErrUnsafe = errors.New("plugin is not safe to start")

// executable reports whether path is a file, or a link to one, that can be
// started.
func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && mayExecute(info)
}

// checkPermissions refuses an executable that everybody may replace, by itself or
// by a link that is followed on the way to it.
func checkPermissions(path string) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("host: plugin %s: %w", path, err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return fmt.Errorf("host: plugin: %w", err)
	}
	if worldWritable(info) {
		return unsafe(target, info)
	}
	if err := checkLinks(path); err != nil {
		return err
	}
	return checkDirectories(filepath.Dir(target), false)
}

// checkDirectories checks the directory of an executable, or of a link, and those
// above it. It must not be writable for everybody at all, not even as /tmp is: who
// may create a file there could have created this one. Further up, and with sticky
// from the beginning, the sticky bit is enough, which keeps others from renaming
// what is below.
func checkDirectories(dir string, sticky bool) error {
	for ; ; sticky = true {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("host: plugin: %w", err)
		}
		if worldWritable(info) && !(sticky && info.Mode()&os.ModeSticky != 0) {
			return unsafe(dir, info)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		dir = parent
	}
}

func unsafe(path string, info os.FileInfo) error {
	return fmt.Errorf("host: %w: everybody may write to %s (%v); chmod o-w it, or install the plugin elsewhere", ErrUnsafe, path, info.Mode())
}
