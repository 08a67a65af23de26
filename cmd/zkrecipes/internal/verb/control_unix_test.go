//go:build unix

package verb

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// controlDirectory makes sockets be created in a directory of this test.
func controlDirectory(t *testing.T) string {
	dir := must.Get(os.MkdirTemp("/tmp", "control-"))(t) // the path of a socket must be short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("TMPDIR", filepath.Join(dir, "none"))
	return filepath.Join(dir, "zkrecipes")
}

// TestARemovedSocketIsCreatedAgain: its directory may have been removed too.
func TestARemovedSocketIsCreatedAgain(t *testing.T) {
	dir := controlDirectory(t)
	c := &control{stop: make(chan struct{})}
	c.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(Upgraded{New: 7}) })
	s := must.Get(listenControl())(t)
	c.tasks.Go(func() { c.keep(s, time.Millisecond) })
	defer c.close()
	must.Do(t, os.RemoveAll(dir))
	for end := time.Now().Add(watchdog.Patience); ; time.Sleep(time.Millisecond) {
		u, err := RequestUpgrade(t.Context(), os.Getpid(), 0)
		if err == nil && u.New == 7 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v, %v", u, err)
		}
	}
}

// TestASocketIsRemovedOnlyIfItsProcessHasEnded: one that does not listen yet refuses connections
// too.
func TestASocketIsRemovedOnlyIfItsProcessHasEnded(t *testing.T) {
	dir := controlDirectory(t)
	ended := must.Get(listenControl())(t)
	must.Do(t, ended.Close()) // as the system does when the process is killed
	starting := filepath.Join(dir, "7-1.new")
	fd := must.Get(syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0))(t)
	defer syscall.Close(fd)
	must.Do(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: starting}))
	for _, pid := range []int{7, os.Getpid()} {
		if _, err := RequestUpgrade(context.Background(), pid, 0); !errors.Is(err, ErrNoProcess) {
			t.Errorf("%d: %v", pid, err)
		}
	}
	if _, err := os.Lstat(starting); err != nil {
		t.Errorf("the socket of a process that starts is gone: %v", err)
	}
	if !ended.vanished() {
		t.Error("the socket of a process that has ended is left")
	}
}

// TestTheDirectoryOfSocketsIsLocked: systemd-tmpfiles skips it as long as a process listens.
func TestTheDirectoryOfSocketsIsLocked(t *testing.T) {
	dir := controlDirectory(t)
	a, b := must.Get(listenControl())(t), must.Get(listenControl())(t)
	must.Do(t, a.Close())
	cleaner := must.Get(os.Open(dir))(t)
	defer cleaner.Close()
	if err := syscall.Flock(int(cleaner.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("a cleaner gets the lock: %v", err)
	}
	must.Do(t, b.Close())
	must.Do(t, syscall.Flock(int(cleaner.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
}
