package verb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hostconfig"
)

// A zkrecipes that waits or runs a command listens on a Unix socket, for the requests of
// upgrade-plugin. The name of the socket begins with the process's number. Its directory belongs
// to the user, and no other user can enter it. A signal cannot be used: signals belong to the
// command, and have no answer.
//
// The name also has a random number, so no other process ever listens on a socket of that name.
// The socket gets the name when it listens. So a socket that refuses a connection belongs to a
// process that has ended, and can be removed at any time.

// Upgraded is the answer to RequestUpgrade: the numbers of the plugin processes, or an error.
type Upgraded struct {
	Old   int    `json:"old_plugin"`
	New   int    `json:"new_plugin"`
	Error string `json:"error,omitempty"`
}

// ErrNoProcess means that no zkrecipes with this number listens.
var ErrNoProcess = errors.New("no zkrecipes of this user with this number runs a command or waits")

// longestDir is the longest directory in which the path of a socket has at most 103 bytes, which
// all systems allow.
const longestDir = 103 - len("/4194304-ffffffff.new")

// socketExt ends the name of a socket that listens.
const socketExt = ".sock"

// controlDirs returns the directories in which sockets can be, the preferred one first. The
// preferred one is the user's runtime directory: the system does not delete old files there, as
// it does in the directory for temporary files. But it exists only while the user is logged in,
// so a process that was started before the log-in uses the other one.
func controlDirs() (dirs []string) {
	runtime := cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), fmt.Sprintf("/run/user/%d", os.Geteuid()))
	if info, err := os.Stat(runtime); err == nil && filepath.IsAbs(runtime) && private(info) {
		dirs = append(dirs, filepath.Join(runtime, "zkrecipes"))
	}
	name, tooLong := fmt.Sprintf("zkrecipes-%d", os.Geteuid()), func(dir string) bool { return len(dir) > longestDir }
	temp := filepath.Join(os.TempDir(), name)
	if tooLong(temp) {
		temp = filepath.Join("/tmp", name)
	}
	return append(slices.DeleteFunc(dirs, tooLong), temp)
}

// makeControlDir creates the first directory in which a socket can be created.
func makeControlDir() (dir string, err error) {
	for _, dir := range controlDirs() {
		if err = os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			continue
		}
		if err = checkControlDir(dir); err == nil {
			return dir, nil
		}
	}
	return "", err
}

func checkControlDir(dir string) error {
	info, err := os.Lstat(dir)
	if err == nil && !private(info) {
		err = fmt.Errorf("%s is not a directory that only this user can enter", dir)
	}
	return err
}

// controlSockets returns the sockets of all processes by their numbers. The result includes the
// sockets of killed processes.
func controlSockets() (map[int][]string, error) {
	sockets := make(map[int][]string)
	for _, dir := range controlDirs() {
		err := checkControlDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			name, listens := strings.CutSuffix(e.Name(), socketExt)
			number, _, _ := strings.Cut(name, "-")
			if pid, err := strconv.Atoi(number); err == nil && listens {
				sockets[pid] = append(sockets[pid], filepath.Join(dir, e.Name()))
			}
		}
	}
	return sockets, nil
}

// control serves the requests for one process.
type control struct {
	server http.Server
	tasks  sync.WaitGroup
	stop   chan struct{}
}

// controlSocket is a socket that listens.
type controlSocket struct {
	net.Listener
	path string
	lock io.Closer // of the directory, so that systemd-tmpfiles does not clean it
}

// listenControl creates a socket, and locks its directory.
func listenControl() (*controlSocket, error) {
	dir, err := makeControlDir()
	if err != nil {
		return nil, err
	}
	s := &controlSocket{path: filepath.Join(dir, fmt.Sprintf("%d-%08x", os.Getpid(), rand.Uint32()))}
	if s.lock, err = lockDirectory(dir); err != nil {
		return nil, err
	}
	s.Listener, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: s.path + ".new"})
	if err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	s.Listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err = os.Rename(s.path+".new", s.path+socketExt); err != nil {
		return nil, errors.Join(err, s.Close(), os.Remove(s.path+".new"))
	}
	s.path += socketExt
	return s, nil
}

// vanished reports whether another program has removed the socket.
func (s *controlSocket) vanished() bool {
	_, err := os.Lstat(s.path)
	return errors.Is(err, os.ErrNotExist)
}

// Close implements net.Listener.
func (s *controlSocket) Close() error {
	return errors.Join(s.Listener.Close(), s.lock.Close())
}

// serveControl listens until close. It returns nil on systems without such sockets, and if
// the tests have replaced the supervisor.
func (c *connection) serveControl() (*control, error) {
	s, ok := c.plugin.(*host.Supervisor)
	if !ok || !ControlSupported {
		return nil, nil
	}
	socket, err := listenControl()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upgrade", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(c.upgrade(r.Context(), s))
	})
	ctl := &control{server: http.Server{Handler: mux}, stop: make(chan struct{})}
	ctl.tasks.Go(func() { ctl.keep(socket, socketCheck) })
	return ctl, nil
}

// socketCheck is the interval of checks that the socket exists.
const socketCheck = time.Minute

// keep serves on a socket until close. If the socket vanishes, keep creates another. A cleaner may
// not honour the lock, and the directory of a user's runtime is removed when the user logs out.
func (c *control) keep(socket *controlSocket, every time.Duration) {
	check := time.NewTicker(every)
	defer check.Stop()
	serve := func(s *controlSocket) { c.tasks.Go(func() { _ = c.server.Serve(s) }) }
	serve(socket)
	for {
		select {
		case <-check.C:
			if !socket.vanished() {
				continue
			}
			if next, err := listenControl(); err == nil {
				_ = socket.Close()
				socket = next
				serve(socket)
			}
		case <-c.stop:
			_ = os.Remove(socket.path)
			_ = c.server.Close()
			return
		}
	}
}

// close removes the socket and ends a request, which then has no answer.
func (c *control) close() {
	if c != nil {
		close(c.stop)
		c.tasks.Wait()
	}
}

// upgrade replaces the plugin by the one that the configuration names now.
func (c *connection) upgrade(ctx context.Context, s *host.Supervisor) (u Upgraded) {
	if p := s.Plugin(); p != nil {
		u.Old = p.PID()
	}
	cfg, err := hostconfig.Load(c.config)
	if err == nil {
		cfg.Plugin.Logger, cfg.Plugin.Lifetime = c.cfg.Plugin.Logger, c.cfg.Plugin.Lifetime
		err = s.Upgrade(ctx, host.UpgradeConfig{Plugin: cfg.Plugin})
	}
	if p := s.Plugin(); p != nil {
		u.New = p.PID()
	}
	if err != nil {
		u.Error = err.Error()
	}
	return u
}

// Controlled returns the numbers of the processes of this user that listen, and of those that
// were killed. RequestUpgrade returns ErrNoProcess for the latter.
func Controlled() ([]int, error) {
	sockets, err := controlSockets()
	return slices.Sorted(maps.Keys(sockets)), err
}

// RequestUpgrade makes a zkrecipes replace its plugin, and waits for the result, for timeout at
// most. A process that was stopped accepts the request and does not answer. 0 means no limit.
func RequestUpgrade(ctx context.Context, pid int, timeout time.Duration) (u Upgraded, err error) {
	ctx, cancel := within(ctx, timeout)
	defer cancel()
	sockets, err := controlSockets()
	if err != nil {
		return u, err
	}
	for _, socket := range sockets[pid] {
		if u, err = requestUpgrade(ctx, socket, timeout); !errors.Is(err, ErrNoProcess) {
			return u, err
		}
	}
	return u, ErrNoProcess
}

func requestUpgrade(ctx context.Context, socket string, timeout time.Duration) (u Upgraded, err error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://zkrecipes/upgrade", bytes.NewReader(nil))
	if err != nil {
		return u, err
	}
	response, err := client.Do(request)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return u, ErrNoProcess
	case errors.Is(err, syscall.ECONNREFUSED):
		_ = os.Remove(socket)
		return u, ErrNoProcess
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return u, fmt.Errorf("no answer within %v: it was stopped, or it hangs", timeout)
	case ctx.Err() != nil:
		return u, fmt.Errorf("no answer: %w", ctx.Err())
	case err != nil:
		return u, errors.New("it has ended before it answered")
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&u); err != nil {
		return u, errors.New("it has ended before it answered")
	}
	if u.Error != "" {
		return u, errors.New(u.Error)
	}
	return u, nil
}
