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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
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
		parts = append(parts, part{p.name, func(ctx context.Context) error {
			h, err := newHostBench(ctx, o.Command, script)
			if err != nil {
				return err
			}
			defer h.end()
			return p.check(h)
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

// start starts the host program.
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

// step makes the host do a step. refused has the reasons if the host answers error.
func (h *hostBench) step(format string, args ...any) (result string, refused []string, err error) {
	return h.answer(h.begin(format, args...))
}

// begin sends a step. answer waits for it, and finds that the host has exited.
func (h *hostBench) begin(format string, args ...any) (step string) {
	step = fmt.Sprintf(format, args...)
	_, _ = fmt.Fprintln(h.stdin, step)
	return step
}

func (h *hostBench) answer(step string) (result string, refused []string, err error) {
	var line string
	var ok bool
	select {
	case line, ok = <-h.lines:
	case <-h.ctx.Done():
		return "", nil, fmt.Errorf("the host does not answer the step %q", step)
	}
	if !ok {
		return "", nil, h.gone(step)
	}
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "ok":
		return rest, nil, nil
	case "error":
		reasons, _, _ := strings.Cut(rest, " ")
		if refused = strings.Split(reasons, ","); slices.Contains(refused, "UNSUPPORTED") {
			return "", nil, skipped(fmt.Sprintf("the host does not support the step %q", step))
		}
		return rest, refused, nil
	}
	return "", nil, fmt.Errorf(`the host answers %q to the step %q; want a line "ok ..." or "error REASON ..."`, line, step)
}

// gone is the error of a step during which the host has exited.
func (h *hostBench) gone(step string) error {
	select {
	case <-h.exited:
		const most = 500
		text := strings.TrimSpace(h.stderr.String())
		return fmt.Errorf("the host exits without an answer to the step %q; stderr: %s", step, text[max(0, len(text)-most):])
	case <-h.ctx.Done():
		return fmt.Errorf("the host closes its stdout before the step %q", step)
	}
}

// ok does a step that must succeed.
func (h *hostBench) ok(format string, args ...any) (result string, err error) {
	return h.succeeded(h.begin(format, args...))
}

// succeeded waits for the answer to a step that must succeed.
func (h *hostBench) succeeded(step string) (result string, err error) {
	result, refused, err := h.answer(step)
	if refused != nil {
		err = fmt.Errorf("the step %q fails: %s", step, result)
	}
	return result, err
}

// fails does a step that must fail, for one of the reasons. None allows all.
func (h *hostBench) fails(reasons []string, format string, args ...any) error {
	step := h.begin(format, args...)
	result, refused, err := h.answer(step)
	switch {
	case err != nil:
		return err
	case refused == nil:
		return fmt.Errorf("the step %q succeeds: ok %s; want error %s", step, result, strings.Join(reasons, " or "))
	}
	return among(refused, reasons, step)
}

func among(refused, reasons []string, step string) error {
	for _, r := range refused {
		if len(reasons) == 0 || slices.Contains(reasons, r) {
			return nil
		}
	}
	return fmt.Errorf("the step %q fails with %s; want %s", step, strings.Join(refused, ","), strings.Join(reasons, " or "))
}

// lost are the reasons why a grant is not held any more.
var lost = []string{"NOT_HELD", "REMOVED", "SESSION_LOST", "SESSION_EXPIRED", "SESSION_DEADLINE", "SESSION_CLOSED", "PLUGIN_LOST"}

// lateness is by how much a host may be late, because the machine is busy.
const lateness = time.Second

// loses asks the host about a grant until it says that the grant is lost. deadline is when it must say so
// at the latest.
func (h *hostBench) loses(id string, deadline time.Time) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		asked := time.Now()
		_, refused, err := h.step("held %s", id)
		switch late := asked.Sub(deadline); {
		case err != nil:
			return err
		case refused != nil:
			return among(refused, lost, "held "+id)
		case late > lateness:
			return fmt.Errorf("the host says that it holds the grant, %v after it had to say that it is lost", late.Round(time.Millisecond))
		}
		select {
		case <-ticker.C:
		case <-h.ctx.Done():
			return errors.New("the host never says that the grant is lost")
		}
	}
}

// open makes the host open a session.
func (h *hostBench) open(timeout time.Duration) error {
	if _, err := h.ok("open %d", timeout.Milliseconds()); err != nil {
		return errors.Join(err, h.usesPlugin())
	}
	if n := len(h.server.Sessions()); n != 1 {
		return fmt.Errorf("the server has %d sessions after the step open; want 1", n)
	}
	return nil
}

// acquire makes the host acquire a lock, and returns the grant's znode.
func (h *hostBench) acquire(id, path string) (zkserver.Node, error) {
	result, err := h.ok("acquire %s %s", id, path)
	if err != nil {
		return zkserver.Node{}, err
	}
	return h.granted(result)
}

// granted returns the znode of a grant, from the answer of the step that acquired it.
func (h *hostBench) granted(result string) (zkserver.Node, error) {
	token, _ := strconv.ParseInt(result, 10, 64)
	if n, ok := h.node(token); ok {
		return n, nil
	}
	return zkserver.Node{}, fmt.Errorf("the host answers ok %s; want the grant's token, the czxid of its znode", result)
}

// node returns the znode of a grant with that token.
func (h *hostBench) node(token int64) (zkserver.Node, bool) {
	for _, n := range h.server.Tree() {
		if n.Stat.Czxid == token && n.Stat.EphemeralOwner > 0 {
			return n, true
		}
	}
	return zkserver.Node{}, false
}

// rival acquires a lock in another session, which the checker has.
func (h *hostBench) rival(path string) (recipes.Client, recipes.Hold, error) {
	s, err := zookeeper.Open(h.ctx, recipes.SessionConfig{Servers: []string{h.server.Addr()}, SessionTimeout: long})
	if err != nil {
		return nil, nil, err
	}
	l, err := s.Lock(path, recipes.LockConfig{})
	var hold recipes.Hold
	if err == nil {
		hold, err = l.Acquire(h.ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, s.Close(h.ctx))
	}
	return s, hold, nil
}

// launched returns the plugin processes that the host has started.
func (h *hostBench) launched() []Launch {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.processes)
}

// usesPlugin fails if the host has not started the plugin.
func (h *hostBench) usesPlugin() error {
	if len(h.launched()) == 0 {
		return fmt.Errorf("the host has not started the plugin of %s", hostPluginEnv)
	}
	return nil
}

// order sets how plugin processes behave that start from now on.
func (h *hostBench) order(o Orders) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.orders = o
}

// on sets what the plugin does about the next events of that name.
func (h *hostBench) on(name string, verdicts ...Verdict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next[name] = append(h.next[name], verdicts...)
}

// silence makes the plugin process, and later ones, answer nothing from now on.
func (h *hostBench) silence(from int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silentFrom = from
}

// kill kills the latest plugin process.
func (h *hostBench) kill() (at time.Time, err error) {
	all := h.launched()
	p, err := os.FindProcess(all[len(all)-1].PID)
	if err != nil {
		return time.Time{}, err
	}
	err = p.Kill()
	return time.Now(), err
}

// received returns the messages of a type that the plugins have received, and in which of them.
func received[M proto.Message](h *hostBench) (messages []M, process []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.seen {
		if m, ok := s.message.(M); ok && !s.Sent {
			messages, process = append(messages, m), append(process, s.process)
		}
	}
	return messages, process
}
