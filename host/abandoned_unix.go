//go:build unix

package host

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockDirectory locks the directory of a plugin's socket until the file is closed. Another host
// then does not remove it, and systemd-tmpfiles does not delete the socket. The directory is
// used without a lock if its file system has none.
func lockDirectory(dir string) *os.File {
	f, err := os.Open(dir)
	if err != nil {
		return nil // the plugin will report that it cannot listen there
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return f
}

// removeIfAbandoned removes a directory if it belongs to this user, has nothing but sockets
// without a process, and is not locked by a host. An empty directory can be that of another
// program that is starting, so it stays.
func removeIfAbandoned(dir string) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !isOurs(info) {
		return
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return
	}
	entries, err := f.ReadDir(-1)
	if err != nil || len(entries) == 0 {
		return
	}
	for _, e := range entries {
		if !isAbandoned(filepath.Join(dir, e.Name())) {
			return
		}
	}
	for _, e := range entries {
		_ = os.Remove(filepath.Join(dir, e.Name()))
	}
	_ = os.Remove(dir)
}

func isOurs(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// listenTime is longer than a process needs from the creation of a socket until it listens.
// Before that, the socket refuses connections too.
const listenTime = 10 * time.Second

// isAbandoned reports whether a file is a plugin's socket on which no process listens. A
// plugin can run without its host, so the lock proves nothing here.
func isAbandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket || !socketName.MatchString(info.Name()) || time.Since(info.ModTime()) < listenTime {
		return false
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
