package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// serverTimeout bounds the checks of one server.
	serverTimeout = 8 * time.Second
	// doctorPath is the path at which doctor acquires locks.
	doctorPath = "/zkrecipes-doctor"
	// clockTolerance is the smallest difference between clocks that gives a warning. Locks do
	// not depend on clocks, but people who compare logs do.
	clockTolerance = 2 * time.Second
)

// server checks one server.
func (v *doctorVerb) server(ctx context.Context, p *host.Plugin, cfg recipes.SessionConfig, server string) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	cfg.Servers = []string{server}
	start := time.Now()
	s, err := p.Open(ctx, cfg)
	if err != nil {
		v.found("zookeeper", fail, serverAdvice(err), "%s: %v", server, err)
		return
	}
	defer s.Close(ctx)
	asked := cfg.SessionTimeout
	if asked == 0 {
		asked = recipes.DefaultSessionTimeout
	}
	status, advice := fine, ""
	if s.Timeout() != asked {
		status, advice = warn, "the server's minSessionTimeout and maxSessionTimeout decide; by default 2 to 20 of its ticks"
	}
	v.found("zookeeper", status, advice, "%s: connected in %v, session timeout %v, requested %v", server, time.Since(start).Round(time.Millisecond), s.Timeout(), asked)
	if !v.readOnly {
		v.lock(ctx, s, server)
	}
}

func serverAdvice(err error) string {
	switch {
	case errors.Is(err, recipes.ErrAuthFailed):
		return "check the auth block, or the sasl block. The servers' JAAS configuration has the mechanism, and their log the reason of a refusal"
	case errors.Is(err, recipes.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return "check that the server runs, that the address is right, and that no firewall and no TLS setting is in the way. Try: echo srvr | nc HOST PORT. It must be ZooKeeper 3.5 or later"
	}
	return exit.Advice(err)
}

// lock acquires and releases a lock, and compares the server's clock with the local one.
func (v *doctorVerb) lock(ctx context.Context, s recipes.Recipes, server string) {
	before := time.Now()
	age, err := takeLock(ctx, s)
	if err != nil {
		advice := exit.Advice(err)
		if errors.Is(err, recipes.ErrAccessDenied) {
			advice = "give this user create and delete rights on the chroot, or change the chroot"
		}
		v.found("lock", fail, advice, "%s: %v", server, err)
		return
	}
	v.found("lock", fine, "", "%s: acquired and released in %v", server, time.Since(before).Round(time.Millisecond))
	status, advice := fine, ""
	if age.Abs() > clockTolerance {
		status, advice = warn, "locks do not depend on clocks, but times in logs and in zkrecipes contenders do; run NTP on both"
	}
	v.found("clock", status, advice, "%s: differs by %v from the local clock", server, age.Round(time.Millisecond))
}

// takeLock acquires and releases a lock. The creation time of our znode, by the server's
// clock, should be between the local times before and after the acquisition. skew is the
// distance from that interval, or 0.
func takeLock(ctx context.Context, s recipes.Recipes) (skew time.Duration, err error) {
	l, err := s.Lock(doctorPath, recipes.LockConfig{Data: []byte("zkrecipes doctor")})
	if err != nil {
		return 0, err
	}
	before := time.Now()
	h, err := l.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	after := time.Now()
	lines, err := s.Contenders(ctx, doctorPath, recipes.KindLock)
	if err := errors.Join(err, h.Release(ctx)); err != nil {
		return 0, err
	}
	for _, c := range lines.Contenders {
		// The server's times are in milliseconds.
		if c.Znode == h.Znode() && c.Since.Before(before.Truncate(time.Millisecond)) {
			return c.Since.Sub(before), nil
		}
		if c.Znode == h.Znode() && c.Since.After(after) {
			return c.Since.Sub(after), nil
		}
	}
	return 0, nil
}

// askedLeast is the session timeout that doctor requests to learn the smallest one that a
// server grants. A smaller minimum is not detected.
const askedLeast = time.Second

// least is the smallest session timeout that a server grants.
type least struct {
	server  string
	timeout time.Duration
}

// leastTimeouts opens and closes a session on each server. It omits a server that does not
// answer, because other checks report that.
func leastTimeouts(ctx context.Context, open recipes.Opener, cfg recipes.SessionConfig) (all []least) {
	servers := cfg.Servers
	for _, server := range servers {
		cfg.Servers, cfg.SessionTimeout = []string{server}, askedLeast
		ctx, cancel := context.WithTimeout(ctx, serverTimeout)
		if s, err := open(ctx, cfg); err == nil {
			all = append(all, least{server, s.Timeout()})
			_ = s.Close(ctx)
		}
		cancel()
	}
	return all
}

// timeouts compares the smallest session timeouts of the servers. A server raises a smaller
// request to its own minimum, but the ensemble stores the request. So after an election, a
// leader with a smaller minimum expires the session earlier than its client expects.
func (v *doctorVerb) timeouts(all []least, asked time.Duration) {
	if len(all) < 2 {
		return
	}
	asked = cmp.Or(asked, recipes.DefaultSessionTimeout)
	differ, largest := false, all[0].timeout
	var list strings.Builder
	for _, l := range all {
		differ = differ || l.timeout != all[0].timeout
		largest = max(largest, l.timeout)
		fmt.Fprintf(&list, " %s %v;", l.server, l.timeout)
	}
	text := strings.TrimSuffix(list.String(), ";")
	switch {
	case !differ:
		v.found("timeouts", fine, "", "the smallest session timeout of each server is %v (less than %v was not tried)", largest, askedLeast)
	case asked >= largest:
		v.found("timeouts", fine, "", "the smallest session timeouts of the servers differ, but none is above the requested %v:%s", asked, text)
	default:
		v.found("timeouts", warn, fmt.Sprintf("set the same minSessionTimeout in zoo.cfg of all servers, or request a session timeout of %v", largest),
			"the smallest session timeouts of the servers differ, so two clients can hold one lock for a moment after an election:%s", text)
	}
}
