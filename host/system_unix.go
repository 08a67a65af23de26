//go:build unix

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ownGroup gives the plugin its own process group. A terminal, a shell or timeout(1) sends
// signals to the host's whole group. Such a signal would end the plugin, and so the host's
// holds, before the host has stopped its work.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func mayExecute(info os.FileInfo) bool { return info.Mode().Perm()&0o111 != 0 }

func worldWritable(info os.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }

// mostLinks is more than the kernel follows.
const mostLinks = 255

// checkLinks checks the directory of each link that the system follows to open an absolute
// path. The path, its directories and the links' targets can be links.
func checkLinks(path string) error { return followLinks(path, checkDirectories) }

// followLinks resolves an absolute path and calls check for the directory of each link on
// the way. sticky reports that the sticky bit is enough to protect the link.
func followLinks(path string, check func(dir string, sticky bool) error) error {
	links := 0
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		target, err := os.Readlink(path[:i])
		if err != nil {
			continue // not a link
		}
		dir := filepath.Dir(path[:i]) // its own links are resolved by now
		if err := check(dir, i < len(path)); err != nil {
			return err
		}
		if links++; links > mostLinks {
			return fmt.Errorf("host: plugin %s: too many links", path)
		}
		if !filepath.IsAbs(target) {
			target = dir + "/" + target
		}
		path, i = target+path[i:], 0
	}
	return nil
}

// checkOwner returns ErrUnsafe if the file or its directory belongs neither to this user nor
// to the administrator. It checks a link and the link's target.
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

// onlyOurs reports whether only this user and the administrator can change or replace an
// executable. They own it, and all directories above it and above the links to it. No group
// may write there.
func onlyOurs(path string) bool {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	info, err := os.Stat(target)
	return err == nil && !othersMayChange(info, false) &&
		checkEach(filepath.Dir(target), false, othersMayChange) == nil &&
		followLinks(path, func(dir string, _ bool) error {
			return checkEach(dir, false, othersMayChange) // in /tmp any user can create a link
		}) == nil
}

// othersMayChange reports whether another user or a group may change a file or the contents
// of a directory. sticky reports that the sticky bit protects the contents.
func othersMayChange(info os.FileInfo, sticky bool) bool {
	return !ownedByUsOrRoot(info, os.Geteuid()) || info.Mode().Perm()&0o022 != 0 && !sticky
}

func ownedByUsOrRoot(info os.FileInfo, us int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Uid == 0 || int(st.Uid) == us
}
