package verify

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
)

// These variables tell a host program what to use. PROTOCOL.md describes them, and the steps.
const (
	hostPluginEnv  = "ZKRECIPES_VERIFY_PLUGIN"
	hostServersEnv = "ZKRECIPES_VERIFY_SERVERS"
)

// Host checks a host: Options.Command is a program that does the steps of PROTOCOL.md,
// "Verification". It yields and fails like Plugin.
func Host(ctx context.Context, o Options, yield func(done, of int, r Result)) error {
	if runtime.GOOS == "windows" {
		return errors.New("-host needs a Unix system: a shell script starts the plugin")
	}
	script, remove, err := pluginScript()
	if err != nil {
		return err
	}
	defer remove()
	var parts []part
	for _, p := range hostPromises {
		parts = append(parts, part{p.name, func(ctx context.Context) {
			h := got(newHostBench(ctx, o.Command, script))
			defer h.end()
			p.check(h)
		}})
	}
	return o.runAll(ctx, parts, yield)
}

// pluginScript writes the executable that hosts start as their plugin. It passes on the directory
// from which it was started, because a host gives a plugin neither arguments nor other variables.
func pluginScript() (path string, remove func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "zkv-")
	if err != nil {
		return "", nil, err
	}
	path, remove = filepath.Join(dir, "plugin"), func() { _ = os.RemoveAll(dir) }
	quoted := "'" + strings.ReplaceAll(self, "'", `'\''`) + "'"
	text := fmt.Sprintf("#!/bin/sh\nexec %s %s \"${0%%/*}\"\n", quoted, PluginVerb)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

// hostBench runs a host program for one part. Its server and its plugin processes do what the part
// wants.
type hostBench struct {
	*bench
	over    chan struct{} // closed at the end of the part
	serving sync.WaitGroup

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan string // of its stdout; closed at its end
	exited chan struct{}
	stderr bytes.Buffer // to read once it has exited

	mu         sync.Mutex
	orders     Orders
	processes  []Launch
	seen       []sighting
	next       map[string][]Verdict // by the name of the event
	silentFrom int                  // this plugin process and later ones do not answer
	early      bool                 // a session was resumed before the plugin process had ended
}

func newHostBench(ctx context.Context, command []string, script string) (*hostBench, error) {
	b, err := newBench(ctx, command)
	if err != nil {
		return nil, err
	}
	h := &hostBench{
		bench: b, over: make(chan struct{}), lines: make(chan string, 16), exited: make(chan struct{}),
		orders: Orders{Version: handshake.Version}, next: map[string][]Verdict{}, silentFrom: 1 << 30,
	}
	plugin := filepath.Join(b.dir, "plugin")
	if err = os.Symlink(script, plugin); err == nil {
		err = h.serveControl()
	}
	if err == nil {
		err = h.start(plugin)
	}
	if err != nil {
		close(h.over)
		h.serving.Wait()
		b.end()
		return nil, err
	}
	return h, nil
}

func (h *hostBench) start(plugin string) (err error) {
	h.cmd = exec.Command(h.command[0], h.command[1:]...)
	h.cmd.Env = append(os.Environ(), hostPluginEnv+"="+plugin, hostServersEnv+"="+h.server.Addr())
	h.cmd.Stderr = &h.stderr
	h.cmd.WaitDelay = closing // a process that it has left may have its stderr
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		return err
	}
	reader, writer := io.Pipe()
	h.cmd.Stdout = writer
	if err := h.cmd.Start(); err != nil {
		return err
	}
	h.serving.Go(func() {
		_ = h.cmd.Wait() // the exit code is in ProcessState
		_ = writer.Close()
		close(h.exited)
	})
	h.serving.Go(func() {
		defer close(h.lines)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			select {
			case h.lines <- lines.Text():
			case <-h.over:
			}
		}
		_, _ = io.Copy(io.Discard, reader) // after a line that is too long
	})
	return nil
}

// end ends the host program, and kills it if it does not exit.
func (h *hostBench) end() {
	_ = h.stdin.Close()
	select {
	case <-h.exited:
	case <-time.After(leaving):
		_ = h.cmd.Process.Kill() // it may have exited
	}
	close(h.over)
	h.serving.Wait()
	h.bench.end()
}
