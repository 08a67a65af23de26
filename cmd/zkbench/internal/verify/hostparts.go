package verify

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// promise is a part of hosts.
type promise struct {
	name  string
	check func(*hostBench) error
}

// hostPromises are the promises of PROTOCOL.md that a host must keep, by its sections.
var hostPromises = slices.Concat(handshakePromises, leasePromises, requestPromises, resumePromises, endPromises)

var handshakePromises = []promise{
	{"handshake/it offers version 1 and a private directory, and attaches", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		env := h.launched()[0].Env
		if !slices.Contains(strings.Split(env[versionsEnv], ","), fmt.Sprint(handshake.Version)) {
			return fmt.Errorf("%s is %q; want the version %d in it", versionsEnv, env[versionsEnv], handshake.Version)
		}
		info, err := os.Stat(env[socketDirectory])
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			return fmt.Errorf("%s has the mode %v; want one that lets only this user in", socketDirectory, info.Mode())
		}
		if attached, _ := received[*pb.AttachRequest](h); len(attached) == 0 {
			return errors.New("it opens a session without a call of Attach")
		}
		return nil
	}},
	{"handshake/it gives up if there is no version in common", func(h *hostBench) error {
		h.order(Orders{Version: 4242})
		return errors.Join(h.fails(nil, "open %d", long.Milliseconds()), h.usesPlugin())
	}},
	{"handshake/it trusts only the certificate of the handshake", func(h *hostBench) error {
		h.order(Orders{Version: handshake.Version, OtherCertificate: true})
		_, refused, err := h.step("open %d", long.Milliseconds())
		switch {
		case err != nil:
			return err
		case len(h.launched()) > 0 && h.launched()[0].Env[handshake.CertificateEnv] == "":
			return skipped("the host does not use TLS")
		case refused == nil:
			return errors.New("it has opened a session through a plugin with another certificate")
		}
		return h.usesPlugin()
	}},
	{"versions/it ignores what it does not know", func(h *hostBench) error {
		h.order(Orders{Version: handshake.Version, Newer: true})
		if err := h.open(long); err != nil {
			return err
		}
		if _, err := h.acquire("a", "/a"); err != nil {
			return err
		}
		if _, err := h.ok("held a"); err != nil {
			return err
		}
		_, err := h.ok("release a")
		return err
	}},
	{"errors/it decides by the reasons that it knows", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		h.on("Acquire", Rename)
		return h.fails([]string{"CONTENDED"}, "try a /a")
	}},
}

// short is the timeout of a session whose deadline is waited for.
const short = 10 * time.Second

var leasePromises = []promise{
	{"lease/it sends a heartbeat at least every fifth of the session timeout", func(h *hostBench) error {
		const timeout, beats = 6 * time.Second, 5
		if err := h.open(timeout); err != nil {
			return err
		}
		var times []time.Time
		if err := h.eventually("sending heartbeats", func() bool { times = h.heartbeats(); return len(times) >= beats }); err != nil {
			return err
		}
		var gaps []time.Duration
		for i := range beats - 1 {
			gaps = append(gaps, times[i+1].Sub(times[i]))
		}
		slices.Sort(gaps)
		if gap := gaps[len(gaps)/2]; gap > timeout/4 { // a busy machine is late
			return fmt.Errorf("the time between two is %v; want at most %v", gap.Round(time.Millisecond), timeout/5)
		}
		return nil
	}},
	{"lease/a grant is lost at the deadline if the plugin does not answer", func(h *hostBench) error {
		if err := h.holds(short); err != nil {
			return err
		}
		h.silence(0)
		return h.loses("a", time.Now().Add(short))
	}},
	{"lease/a session that ZooKeeper has expired is lost", func(h *hostBench) error {
		if err := h.holds(long); err != nil {
			return err
		}
		h.server.ExpireSession(h.server.Sessions()[0])
		return h.loses("a", time.Now().Add(patience))
	}},
	{"lease/a session is lost if its stream ends while the plugin runs", func(h *hostBench) error {
		if err := h.holds(short); err != nil {
			return err
		}
		h.on("Beat", Cut)
		return errors.Join(h.loses("a", time.Now().Add(short/5+patience)), h.neverResumed())
	}},
	{"lease/a grant whose znode another client deletes is lost, and the session is not", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		n, err := h.acquire("a", "/a")
		if err != nil {
			return err
		}
		s, other, err := h.rival("/other")
		if err != nil {
			return err
		}
		defer s.Close(h.ctx)
		if err := other.Write(h.ctx, recipes.Delete(n.Path, recipes.AnyVersion)); err != nil {
			return err
		}
		if err := h.loses("a", time.Now().Add(patience)); err != nil {
			return err
		}
		_, err = h.acquire("b", "/a")
		return err
	}},
}

var requestPromises = []promise{
	{"requests/a grant has its token, and each request an id of its own", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		for _, id := range []string{"a", "b"} {
			if _, err := h.acquire(id, "/a"); err != nil {
				return err
			}
			if _, err := h.ok("release %s", id); err != nil {
				return err
			}
		}
		if asked, _ := received[*pb.AcquireRequest](h); len(asked) != 2 || asked[0].GetRequestId() == asked[1].GetRequestId() {
			return fmt.Errorf("the requests are %v; want two with different request ids", asked)
		}
		return nil
	}},
	{"requests/try is refused while another client holds the lock, and leaves nothing", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		s, hold, err := h.rival("/a")
		if err != nil {
			return err
		}
		defer s.Close(h.ctx)
		if err := h.fails([]string{"CONTENDED"}, "try a /a"); err != nil {
			return err
		}
		if err := hold.Release(h.ctx); err != nil {
			return err
		}
		token, err := h.ok("try b /a")
		if err != nil {
			return err
		}
		_, err = h.granted(token)
		return err
	}},
	{"requests/a lock is granted when the client ahead has released it", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		s, hold, err := h.rival("/a")
		if err != nil {
			return err
		}
		defer s.Close(h.ctx)
		step := h.begin("acquire a /a")
		if err := h.eventually("in the wait queue: the host", func() bool { return h.owned() == 2 }); err != nil {
			return err
		}
		if err := hold.Release(h.ctx); err != nil {
			return err
		}
		token, err := h.succeeded(step)
		if err != nil {
			return err
		}
		_, err = h.granted(token)
		return err
	}},
	{"requests/release releases that grant and no other", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		a, err := h.acquire("a", "/a")
		if err != nil {
			return err
		}
		b, err := h.acquire("b", "/b")
		if err != nil {
			return err
		}
		if _, err := h.ok("release a"); err != nil {
			return err
		}
		if _, held := h.node(a.Stat.Czxid); held {
			return errors.New("the znode of the released grant exists")
		}
		if _, held := h.node(b.Stat.Czxid); !held {
			return errors.New("the znode of the other grant is deleted")
		}
		if _, err := h.ok("held b"); err != nil {
			return err
		}
		return h.fails(append([]string{"RELEASED"}, lost...), "held a")
	}},
	{"requests/a grant that crosses with the caller's timeout is abandoned", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		h.on("Acquire", Lose)
		h.on("Abandon", Refuse)
		if err := h.fails(nil, "acquire a /a %d", patience.Milliseconds()); err != nil {
			return err
		}
		asked, _ := received[*pb.AcquireRequest](h)
		if len(asked) == 0 {
			return errors.New("the plugin has not received the call of Acquire")
		}
		err := h.eventually("abandoned until an answer: the request id of Acquire", func() bool {
			all, _ := received[*pb.AbandonRequest](h)
			return len(slices.DeleteFunc(all, func(r *pb.AbandonRequest) bool { return r.GetRequestId() != asked[0].GetRequestId() })) >= 2
		})
		if err != nil {
			return err
		}
		return h.eventually("released: the grant", func() bool { return h.owned() == 0 })
	}},
	{"requests/the reason of a refused write is reported", func(h *hostBench) error {
		if err := h.holds(long); err != nil {
			return err
		}
		if _, err := h.ok("write a /data"); err != nil {
			return err
		}
		return h.fails([]string{"NODE_EXISTS"}, "write a /data")
	}},
	{"requests/a write of an unknown outcome is reported, and not repeated", func(h *hostBench) error {
		if err := h.holds(long); err != nil {
			return err
		}
		h.on("Write", Doubt)
		return errors.Join(h.fails([]string{"UNKNOWN_OUTCOME"}, "write a /data"), h.writesOnce())
	}},
}

// patience is how long a host may take to report a loss that it was notified of. It is also the
// limit of a step that is given up.
const patience = 5 * time.Second

// holds makes the host open a session and acquire the lock /a as a.
func (h *hostBench) holds(timeout time.Duration) error {
	err := h.open(timeout)
	if err == nil {
		_, err = h.acquire("a", "/a")
	}
	if err == nil {
		_, err = h.ok("held a")
	}
	return err
}

// heartbeats returns when they arrived.
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
		return fmt.Errorf("the write is sent %d times; want once", len(sent))
	}
	return nil
}

// neverResumed fails if the host has tried to resume a session.
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
