package verb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hostconfig"
)

// A zkrecipes that waits or runs a command listens on a Unix socket, for the requests of
// upgrade-plugin. The name of the socket is the process's number. Its directory belongs to the
// user, and no other user can enter it. A signal would not do: it belongs to the command, and
// it has no answer.

// Upgraded is the answer to RequestUpgrade: the numbers of the plugin processes, or an error.
type Upgraded struct {
	Old   int    `json:"old_plugin"`
	New   int    `json:"new_plugin"`
	Error string `json:"error,omitempty"`
}

// ErrNoProcess means that no zkrecipes with this number listens.
var ErrNoProcess = errors.New("no zkrecipes of this user with this number runs a command or waits")

// longestTemp is the longest directory for temporary files in which the path of a socket has at
// most 103 bytes, which all systems allow.
const longestTemp = 103 - len("/zkrecipes-4294967295/4194304.sock")

// controlDir returns the directory of the sockets, and creates it.
func controlDir() (string, error) {
	temp := os.TempDir()
	if len(temp) > longestTemp {
		temp = "/tmp"
	}
	dir := filepath.Join(temp, fmt.Sprintf("zkrecipes-%d", os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	if info, err := os.Lstat(dir); err != nil || !private(info) {
		return "", fmt.Errorf("%s is not a directory that only this user can enter", dir)
	}
	return dir, nil
}

func controlSocket(dir string, pid int) string { return filepath.Join(dir, strconv.Itoa(pid)+".sock") }

// control serves the requests for one process.
type control struct {
	server http.Server
	served chan struct{}
}

// serveControl listens until close. It returns nil on systems without such sockets, and if
// the tests have replaced the supervisor.
func (c *connection) serveControl() (*control, error) {
	s, ok := c.plugin.(*host.Supervisor)
	if !ok || !ControlSupported {
		return nil, nil
	}
	dir, err := controlDir()
	if err != nil {
		return nil, err
	}
	socket := controlSocket(dir, os.Getpid())
	listener, err := net.Listen("unix", socket)
	if errors.Is(err, syscall.EADDRINUSE) { // of a process that was killed
		if other, failed := net.Dial("unix", socket); failed == nil { // in another PID namespace
			_ = other.Close()
			return nil, err
		}
		_ = os.Remove(socket)
		listener, err = net.Listen("unix", socket)
	}
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upgrade", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(c.upgrade(r.Context(), s))
	})
	ctl := &control{server: http.Server{Handler: mux}, served: make(chan struct{})}
	go func() { // until close
		defer close(ctl.served)
		_ = ctl.server.Serve(listener)
	}()
	return ctl, nil
}

// close removes the socket and ends a request, which then has no answer.
func (c *control) close() {
	if c != nil {
		_ = c.server.Close()
		<-c.served
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
func Controlled() (pids []int, err error) {
	dir, err := controlDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		name, _ := strings.CutSuffix(e.Name(), ".sock")
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// RequestUpgrade makes a zkrecipes replace its plugin, and waits for the result, for timeout at
// most. A process that was stopped accepts the request and does not answer. 0 is no limit.
func RequestUpgrade(ctx context.Context, pid int, timeout time.Duration) (u Upgraded, err error) {
	ctx, cancel := within(ctx, timeout)
	defer cancel()
	dir, err := controlDir()
	if err != nil {
		return u, err
	}
	socket := controlSocket(dir, pid)
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
