package verify

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// step makes the host do a step. refused has the reasons if the host answers error.
func (h *hostBench) step(format string, args ...any) (result string, refused []string) {
	result, refused, err := h.answer(h.begin(format, args...))
	require(err)
	return result, refused
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
		return fmt.Errorf("the host exits without an answer to the step %q; stderr: %s", step, tail(&h.stderr))
	case <-h.ctx.Done():
		return fmt.Errorf("the host closes its stdout before the step %q", step)
	}
}

func (h *hostBench) ok(format string, args ...any) (result string) {
	return got(h.succeeded(h.begin(format, args...)))
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
var lost = []string{"NOT_HELD", "REMOVED", "SESSION_LOST", "SESSION_EXPIRED", "SESSION_DEADLINE", "SESSION_CLOSED", "SESSION_NOT_CONTINUED", "PLUGIN_LOST"}

// lateness is by how much a host may be late, because the machine is busy.
const lateness = time.Second

// loses asks the host about a grant until it reports the loss. deadline is the latest time for that.
func (h *hostBench) loses(id string, deadline time.Time) (err error) {
	done := h.poll(func() bool {
		asked := time.Now()
		var refused []string
		_, refused, err = h.answer(h.begin("held %s", id))
		switch late := asked.Sub(deadline); {
		case err != nil:
		case refused != nil:
			err = among(refused, lost, "held "+id)
		case late > lateness:
			err = fmt.Errorf("the host reports the lost grant as held, %v too late", late.Round(time.Millisecond))
		default:
			return false
		}
		return true
	})
	if !done {
		return errors.New("the host never reports the loss of the grant")
	}
	return err
}

func (h *hostBench) open(timeout time.Duration) {
	if _, err := h.succeeded(h.begin("open %d", timeout.Milliseconds())); err != nil {
		require(errors.Join(err, h.usesPlugin()))
	}
	if n := len(h.server.Sessions()); n != 1 {
		failf("the server has %s after the step open; want 1", english.Count(n, "session"))
	}
}

func (h *hostBench) acquire(id, path string) zkserver.Node {
	return h.granted(h.ok("acquire %s %s", id, path))
}

// holds makes the host open a session and acquire the lock /a as a.
func (h *hostBench) holds(timeout time.Duration) {
	h.open(timeout)
	h.acquire("a", "/a")
	h.ok("held a")
}

func (h *hostBench) granted(result string) zkserver.Node {
	token, _ := strconv.ParseInt(result, 10, 64)
	n, ok := h.node(token)
	if !ok {
		failf("the host answers ok %s; want the grant's token, the czxid of its znode", result)
	}
	return n
}

func (h *hostBench) node(token int64) (zkserver.Node, bool) {
	for _, n := range h.server.Tree() {
		if n.Stat.Czxid == token && n.Stat.EphemeralOwner > 0 {
			return n, true
		}
	}
	return zkserver.Node{}, false
}

// rival acquires a lock in another session, which the checker has.
func (h *hostBench) rival(path string) (recipes.Client, recipes.Hold) {
	s := got(zookeeper.Open(h.ctx, recipes.SessionConfig{Servers: []string{h.server.Addr()}, SessionTimeout: long}))
	l, err := s.Lock(path, recipes.LockConfig{})
	var hold recipes.Hold
	if err == nil {
		hold, err = l.Acquire(h.ctx)
	}
	if err != nil {
		require(errors.Join(err, s.Close(h.ctx)))
	}
	return s, hold
}

func (h *hostBench) launched() []Launch {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.processes)
}

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

func (h *hostBench) kill() (at time.Time) {
	all := h.launched()
	require(got(os.FindProcess(all[len(all)-1].PID)).Kill())
	return time.Now()
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

func (h *hostBench) heartbeats() (times []time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.seen {
		if s.Name == "Beat" {
			times = append(times, s.at)
		}
	}
	return times
}

func (h *hostBench) writesOnce() error {
	if sent, _ := received[*pb.WriteRequest](h); len(sent) != 1 {
		return fmt.Errorf("the write is sent %s; want once", english.Count(len(sent), "time"))
	}
	return nil
}

func (h *hostBench) neverResumed() error {
	for _, r := range h.starts() {
		if r.GetResume() != nil {
			return errors.New("it tries to resume the session")
		}
	}
	return nil
}

// starts returns what the host has asked for on the streams of sessions.
func (h *hostBench) starts() (all []*pb.Start) {
	messages, _ := received[*pb.OpenRequest](h)
	for _, m := range messages {
		if m.GetStart() != nil {
			all = append(all, m.GetStart())
		}
	}
	return all
}
