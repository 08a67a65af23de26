package verify

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

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
var lost = []string{"NOT_HELD", "REMOVED", "SESSION_LOST", "SESSION_EXPIRED", "SESSION_DEADLINE", "SESSION_CLOSED", "SESSION_NOT_CONTINUED", "PLUGIN_LOST"}

// lateness is by how much a host may be late, because the machine is busy.
const lateness = time.Second

// loses asks the host about a grant until it reports the loss. deadline is the latest time for that.
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
			return fmt.Errorf("the host reports the lost grant as held, %v too late", late.Round(time.Millisecond))
		}
		select {
		case <-ticker.C:
		case <-h.ctx.Done():
			return errors.New("the host never reports the loss of the grant")
		}
	}
}

// open makes the host open a session.
func (h *hostBench) open(timeout time.Duration) error {
	if _, err := h.ok("open %d", timeout.Milliseconds()); err != nil {
		return errors.Join(err, h.usesPlugin())
	}
	if n := len(h.server.Sessions()); n != 1 {
		return fmt.Errorf("the server has %s after the step open; want 1", english.Count(n, "session"))
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
