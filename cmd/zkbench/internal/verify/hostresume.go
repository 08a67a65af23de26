package verify

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/english"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// Resuming is optional. A host that does not resume reports the loss when its plugin is killed.
var resumePromises = []promise{
	{"resume/what a killed plugin held is resumed by the rules", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		n, err := h.acquire("a", "/a")
		if err != nil {
			return err
		}
		killed, err := h.kill()
		if err != nil {
			return err
		}
		if err := h.resumed(); err != nil {
			return err
		}
		if err := h.rules(killed); err != nil {
			return err
		}
		if _, err := h.ok("write a /data"); err != nil {
			return err
		}
		if _, held := h.node(n.Stat.Czxid); !held {
			return fmt.Errorf("the znode %s of the grant is gone", n.Path)
		}
		_, err = h.ok("release a")
		return err
	}},
	{"resume/the deadline does not move while no plugin answers", func(h *hostBench) error {
		if err := h.holds(short); err != nil {
			return err
		}
		h.silence(1)
		killed, err := h.kill()
		if err != nil {
			return err
		}
		return h.loses("a", killed.Add(short))
	}},
	{"resume/an acquire that was cut off is repeated with its request id", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		h.on("Acquire", Die)
		result, refused, err := h.step("acquire a /a")
		switch {
		case err != nil:
			return err
		case refused != nil:
			return h.givesUp(among(refused, lost, "acquire a /a"))
		}
		if _, err := h.granted(result); err != nil {
			return err
		}
		asked, _ := received[*pb.AcquireRequest](h)
		if slices.ContainsFunc(asked, func(r *pb.AcquireRequest) bool { return r.GetRequestId() != asked[0].GetRequestId() }) {
			return fmt.Errorf("the requests are %v; want the same request id in all", asked)
		}
		if h.owned() != 1 {
			return fmt.Errorf("the session has %s; want 1", english.Count(h.owned(), "contender"))
		}
		return nil
	}},
	{"resume/a write that was cut off has an unknown outcome, and is not repeated", func(h *hostBench) error {
		if err := h.holds(long); err != nil {
			return err
		}
		h.on("Write", Die)
		return errors.Join(h.fails([]string{"UNKNOWN_OUTCOME"}, "write a /data"), h.writesOnce())
	}},
	{"resume/a session that its plugin has closed is lost", func(h *hostBench) error {
		if err := h.holds(short); err != nil {
			return err
		}
		h.on("Beat", Quit)
		return errors.Join(h.loses("a", time.Now().Add(short/5+patience)), h.neverResumed())
	}},
}

// resumed waits until the second plugin process has resumed the session and what it holds.
func (h *hostBench) resumed() error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		if rest, _ := received[*pb.DropRestRequest](h); len(rest) > 0 {
			break
		}
		if _, refused, err := h.step("held a"); err != nil {
			return err
		} else if refused != nil {
			return h.givesUp(among(refused, lost, "held a"))
		}
		select {
		case <-ticker.C:
		case <-h.ctx.Done():
			return errors.New("the host neither resumes the session nor reports its loss")
		}
	}
	_, err := h.ok("held a")
	return err
}

// givesUp skips the part of a host that reports the loss and has not tried to resume.
func (h *hostBench) givesUp(err error) error {
	if err != nil {
		return err
	}
	if h.neverResumed() != nil {
		return errors.New("the host begins to resume the session, and then reports its loss")
	}
	return skipped("the host does not resume sessions")
}

// rules checks how the second plugin process was asked to resume a session whose lock is a.
func (h *hostBench) rules(killed time.Time) error {
	h.mu.Lock()
	early := h.early
	h.mu.Unlock()
	if early {
		return errors.New("it resumes before it has waited for the end of the first plugin process")
	}
	starts := h.starts()
	r := starts[len(starts)-1].GetResume()
	if r == nil || len(r.GetTicket()) == 0 {
		return errors.New("it calls DropRest without having resumed a session by its ticket")
	}
	if age, least := r.GetKnownContactAge().AsDuration(), h.launched()[1].at.Sub(killed); age < least {
		return fmt.Errorf("known_contact_age is %v; the plugin was killed %v before", age, least)
	}
	asked, process := received[*pb.AcquireRequest](h)
	again := slices.Index(process, 1)
	if again < 0 || asked[again].GetResumed() == nil {
		return errors.New("it does not repeat Acquire with resumed")
	}
	if first := asked[0].GetRequestId(); asked[again].GetRequestId() != first {
		return fmt.Errorf("it resumes the grant %s by the request id %s", first, asked[again].GetRequestId())
	}
	return nil
}

var endPromises = []promise{
	{"end/close ends the session, and end of input the plugin and the host", func(h *hostBench) error {
		if err := h.holds(long); err != nil {
			return err
		}
		if _, err := h.ok("close"); err != nil {
			return err
		}
		if len(h.server.Sessions()) > 0 {
			return errors.New("ZooKeeper has the session after the step close")
		}
		return h.ends()
	}},
	{"end/end of input ends the session, the plugin and the host", func(h *hostBench) error {
		if err := h.holds(long); err != nil {
			return err
		}
		if err := h.ends(); err != nil {
			return err
		}
		if len(h.server.Sessions()) > 0 {
			return errors.New("ZooKeeper has the session after the host has exited")
		}
		return nil
	}},
	{"end/a plugin that does not answer is killed", func(h *hostBench) error {
		if err := h.holds(long); err != nil {
			return err
		}
		h.silence(0)
		return h.ends()
	}},
}

// ends closes the input of the host, which must then end its plugin and exit.
func (h *hostBench) ends() error {
	if err := h.stdin.Close(); err != nil {
		return err
	}
	select {
	case <-h.exited:
	case <-h.ctx.Done():
		return errors.New("the host does not exit at the end of its input")
	}
	if code := h.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the host exits with code %d at the end of its input; stderr: %s", code, &h.stderr)
	}
	for _, l := range h.launched() {
		if running(l.PID) {
			return fmt.Errorf("the host leaves its plugin, process %d", l.PID)
		}
	}
	return nil
}
