//go:build unix

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

func mayExecute(info os.FileInfo) bool { return info.Mode().Perm()&0o111 != 0 }

func worldWritable(info os.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }

// checkOwner refuses a file, or its directory, that belongs neither to this
// user nor to the administrator. A link that somebody made is checked as such.
func checkOwner(path string) error {
	for _, p := range []string{path, filepath.Dir(path)} {
		for _, stat := range []func(string) (os.FileInfo, error){os.Lstat, os.Stat} {
			info, err := stat(p)
			if err != nil {
				return fmt.Errorf("host: plugin: %w", err)
			}
			if !ownedByUsOrRoot(info, os.Geteuid()) {
				return fmt.Errorf("host: %w: %s in the working directory belongs to another user; set %s if you want plugins from there", ErrUnsafe, p, PluginDirEnv)
			}
		}
	}
	return nil
}

func ownedByUsOrRoot(info os.FileInfo, us int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Uid == 0 || int(st.Uid) == us
}
