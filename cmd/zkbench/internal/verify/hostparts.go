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

// patience is how long a host may take to report a loss that it was notified of. It is also the
// limit of a step that is given up.
const patience = 5 * time.Second

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
