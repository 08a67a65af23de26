package verify

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// hostPromises are the promises of PROTOCOL.md that a host must keep, by its sections.
var hostPromises = slices.Concat(handshakePromises, leasePromises, requestPromises, resumePromises, endPromises)

var handshakePromises = []promise[*hostBench]{
	{"handshake/it offers version 1 and a private directory, and attaches", func(h *hostBench) {
		h.open(long)
		env := h.launched()[0].Env
		if !slices.Contains(strings.Split(env[versionsEnv], ","), fmt.Sprint(handshake.Version)) {
			failf("%s is %q; want the version %d in it", versionsEnv, env[versionsEnv], handshake.Version)
		}
		info := got(os.Stat(env[socketDirectory]))
		if info.Mode().Perm()&0o077 != 0 {
			failf("%s has the mode %v; want one that lets only this user in", socketDirectory, info.Mode())
		}
		if attached, _ := received[*pb.AttachRequest](h); len(attached) == 0 {
			failf("it opens a session without a call of Attach")
		}
	}},
	{"handshake/it gives up if there is no version in common", func(h *hostBench) {
		h.order(Orders{Version: 4242})
		require(errors.Join(h.fails(nil, "open %d", long.Milliseconds()), h.usesPlugin()))
	}},
	{"handshake/it trusts only the certificate of the handshake", func(h *hostBench) {
		h.order(Orders{Version: handshake.Version, OtherCertificate: true})
		_, refused := h.step("open %d", long.Milliseconds())
		switch {
		case len(h.launched()) > 0 && h.launched()[0].Env[handshake.CertificateEnv] == "":
			require(skipped("the host does not use TLS"))
		case refused == nil:
			failf("it has opened a session through a plugin with another certificate")
		}
		require(h.usesPlugin())
	}},
	{"versions/it ignores what it does not know", func(h *hostBench) {
		h.order(Orders{Version: handshake.Version, Newer: true})
		h.open(long)
		h.acquire("a", "/a")
		h.ok("held a")
		h.ok("release a")
	}},
	{"errors/it decides by the reasons that it knows", func(h *hostBench) {
		h.open(long)
		h.on("Acquire", Rename)
		require(h.fails([]string{"CONTENDED"}, "try a /a"))
	}},
}

// patience is how long a host may take to report a loss that it was notified of. It is also the
// limit of a step that is given up.
const patience = 5 * time.Second

// short is the timeout of a session whose deadline is waited for.
const short = 10 * time.Second

var leasePromises = []promise[*hostBench]{
	{"lease/it sends a heartbeat at least every fifth of the session timeout", func(h *hostBench) {
		const timeout, beats = 6 * time.Second, 5
		h.open(timeout)
		var times []time.Time
		require(h.eventually("sending heartbeats", func() bool { times = h.heartbeats(); return len(times) >= beats }))
		var gaps []time.Duration
		for i := range beats - 1 {
			gaps = append(gaps, times[i+1].Sub(times[i]))
		}
		slices.Sort(gaps)
		if gap := gaps[len(gaps)/2]; gap > timeout/4 { // a busy machine is late
			failf("the time between two is %v; want at most %v", gap.Round(time.Millisecond), timeout/5)
		}
	}},
	{"lease/a grant is lost at the deadline if the plugin does not answer", func(h *hostBench) {
		h.holds(short)
		h.silence(0)
		require(h.loses("a", time.Now().Add(short)))
	}},
	{"lease/a session that ZooKeeper has expired is lost", func(h *hostBench) {
		h.holds(long)
		h.server.ExpireSession(h.server.Sessions()[0])
		require(h.loses("a", time.Now().Add(patience)))
	}},
	{"lease/a session is lost if its stream ends while the plugin runs", func(h *hostBench) {
		h.holds(short)
		h.on("Beat", Cut)
		require(errors.Join(h.loses("a", time.Now().Add(short/5+patience)), h.neverResumed()))
	}},
	{"lease/a grant whose znode another client deletes is lost, and the session is not", func(h *hostBench) {
		h.open(long)
		n := h.acquire("a", "/a")
		s, other := h.rival("/other")
		defer s.Close(h.ctx)
		require(other.Write(h.ctx, recipes.Delete(n.Path, recipes.AnyVersion)))
		require(h.loses("a", time.Now().Add(patience)))
		h.acquire("b", "/a")
	}},
}

var requestPromises = []promise[*hostBench]{
	{"requests/a grant has its token, and each request an id of its own", func(h *hostBench) {
		h.open(long)
		for _, id := range []string{"a", "b"} {
			h.acquire(id, "/a")
			h.ok("release %s", id)
		}
		if asked, _ := received[*pb.AcquireRequest](h); len(asked) != 2 || asked[0].GetRequestId() == asked[1].GetRequestId() {
			failf("the requests are %v; want two with different request ids", asked)
		}
	}},
	{"requests/try is refused while another client holds the lock, and leaves nothing", func(h *hostBench) {
		h.open(long)
		s, hold := h.rival("/a")
		defer s.Close(h.ctx)
		require(h.fails([]string{"CONTENDED"}, "try a /a"))
		require(hold.Release(h.ctx))
		h.granted(h.ok("try b /a"))
	}},
	{"requests/a lock is granted when the client ahead has released it", func(h *hostBench) {
		h.open(long)
		s, hold := h.rival("/a")
		defer s.Close(h.ctx)
		step := h.begin("acquire a /a")
		require(h.eventually("in the wait queue: the host", func() bool { return h.owned() == 2 }))
		require(hold.Release(h.ctx))
		h.granted(got(h.succeeded(step)))
	}},
	{"requests/release releases that grant and no other", func(h *hostBench) {
		h.open(long)
		a := h.acquire("a", "/a")
		b := h.acquire("b", "/b")
		h.ok("release a")
		if _, held := h.node(a.Stat.Czxid); held {
			failf("the znode of the released grant exists")
		}
		if _, held := h.node(b.Stat.Czxid); !held {
			failf("the znode of the other grant is deleted")
		}
		h.ok("held b")
		require(h.fails(append([]string{"RELEASED"}, lost...), "held a"))
	}},
	{"requests/a grant that crosses with the caller's timeout is abandoned", func(h *hostBench) {
		h.open(long)
		h.on("Acquire", Lose)
		h.on("Abandon", Refuse)
		require(h.fails(nil, "acquire a /a %d", patience.Milliseconds()))
		asked, _ := received[*pb.AcquireRequest](h)
		if len(asked) == 0 {
			failf("the plugin has not received the call of Acquire")
		}
		require(h.eventually("abandoned until an answer: the request id of Acquire", func() bool {
			all, _ := received[*pb.AbandonRequest](h)
			return len(slices.DeleteFunc(all, func(r *pb.AbandonRequest) bool { return r.GetRequestId() != asked[0].GetRequestId() })) >= 2
		}))
		require(h.eventually("released: the grant", func() bool { return h.owned() == 0 }))
	}},
	{"requests/the reason of a refused write is reported", func(h *hostBench) {
		h.holds(long)
		h.ok("write a /data")
		require(h.fails([]string{"NODE_EXISTS"}, "write a /data"))
	}},
	{"requests/a write of an unknown outcome is reported, and not repeated", func(h *hostBench) {
		h.holds(long)
		h.on("Write", Doubt)
		require(errors.Join(h.fails([]string{"UNKNOWN_OUTCOME"}, "write a /data"), h.writesOnce()))
	}},
}

// Resuming is optional. A host that does not resume reports the loss when its plugin is killed.
var resumePromises = []promise[*hostBench]{
	{"resume/what a killed plugin held is resumed by the rules", func(h *hostBench) {
		h.open(long)
		n := h.acquire("a", "/a")
		killed := h.kill()
		h.resumed()
		h.rules(killed)
		h.ok("write a /data")
		if _, held := h.node(n.Stat.Czxid); !held {
			failf("the znode %s of the grant is gone", n.Path)
		}
		h.ok("release a")
	}},
	{"resume/the deadline does not move while no plugin answers", func(h *hostBench) {
		h.holds(short)
		h.silence(1)
		require(h.loses("a", h.kill().Add(short)))
	}},
	{"resume/an acquire that was cut off is repeated with its request id", func(h *hostBench) {
		h.open(long)
		h.on("Acquire", Die)
		result, refused := h.step("acquire a /a")
		if refused != nil {
			h.givesUp(refused, "acquire a /a")
		}
		h.granted(result)
		asked, _ := received[*pb.AcquireRequest](h)
		if slices.ContainsFunc(asked, func(r *pb.AcquireRequest) bool { return r.GetRequestId() != asked[0].GetRequestId() }) {
			failf("the requests are %v; want the same request id in all", asked)
		}
		if h.owned() != 1 {
			failf("the session has %s; want 1", english.Count(h.owned(), "contender"))
		}
	}},
	{"resume/a write that was cut off has an unknown outcome, and is not repeated", func(h *hostBench) {
		h.holds(long)
		h.on("Write", Die)
		require(errors.Join(h.fails([]string{"UNKNOWN_OUTCOME"}, "write a /data"), h.writesOnce()))
	}},
	{"resume/a session that its plugin has closed is lost", func(h *hostBench) {
		h.holds(short)
		h.on("Beat", Quit)
		require(errors.Join(h.loses("a", time.Now().Add(short/5+patience)), h.neverResumed()))
	}},
}

// resumed waits until the second plugin process has resumed the session and what it holds.
func (h *hostBench) resumed() {
	done := h.poll(func() bool {
		rest, _ := received[*pb.DropRestRequest](h)
		if len(rest) > 0 {
			return true
		}
		if _, refused := h.step("held a"); refused != nil {
			h.givesUp(refused, "held a")
		}
		return false
	})
	if !done {
		failf("the host neither resumes the session nor reports its loss")
	}
	h.ok("held a")
}

// givesUp skips the part of a host that has refused a step because of the loss, and has not tried to
// resume.
func (h *hostBench) givesUp(refused []string, step string) {
	require(among(refused, lost, step))
	if h.neverResumed() != nil {
		failf("the host begins to resume the session, and then reports its loss")
	}
	require(skipped("the host does not resume sessions"))
}

// rules checks how the second plugin process was asked to resume a session whose lock is a.
func (h *hostBench) rules(killed time.Time) {
	h.mu.Lock()
	early := h.early
	h.mu.Unlock()
	if early {
		failf("it resumes before it has waited for the end of the first plugin process")
	}
	starts := h.starts()
	r := starts[len(starts)-1].GetResume()
	if r == nil || len(r.GetTicket()) == 0 {
		failf("it calls DropRest without having resumed a session by its ticket")
	}
	if age, least := r.GetKnownContactAge().AsDuration(), h.launched()[1].at.Sub(killed); age < least {
		failf("known_contact_age is %v; the plugin was killed %v before", age, least)
	}
	asked, process := received[*pb.AcquireRequest](h)
	again := slices.Index(process, 1)
	if again < 0 || asked[again].GetResumed() == nil {
		failf("it does not repeat Acquire with resumed")
	}
	if first := asked[0].GetRequestId(); asked[again].GetRequestId() != first {
		failf("it resumes the grant %s by the request id %s", first, asked[again].GetRequestId())
	}
}

var endPromises = []promise[*hostBench]{
	{"end/close ends the session, and end of input the plugin and the host", func(h *hostBench) {
		h.holds(long)
		h.ok("close")
		if len(h.server.Sessions()) > 0 {
			failf("ZooKeeper has the session after the step close")
		}
		h.ends()
	}},
	{"end/end of input ends the session, the plugin and the host", func(h *hostBench) {
		h.holds(long)
		h.ends()
		if len(h.server.Sessions()) > 0 {
			failf("ZooKeeper has the session after the host has exited")
		}
	}},
	{"end/a plugin that does not answer is killed", func(h *hostBench) {
		h.holds(long)
		h.silence(0)
		h.ends()
	}},
}

// ends closes the input of the host, which must then end its plugin and exit.
func (h *hostBench) ends() {
	require(h.stdin.Close())
	select {
	case <-h.exited:
	case <-h.ctx.Done():
		failf("the host does not exit at the end of its input")
	}
	if code := h.cmd.ProcessState.ExitCode(); code != 0 {
		failf("the host exits with code %d at the end of its input; stderr: %s", code, &h.stderr)
	}
	for _, l := range h.launched() {
		if running(l.PID) {
			failf("the host leaves its plugin, process %d", l.PID)
		}
	}
}
