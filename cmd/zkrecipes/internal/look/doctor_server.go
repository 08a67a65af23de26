package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/fourletter"
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
	// leastTicks and leastTicksAtObserver are the shortest session timeouts, in ticks, for
	// which a holder is notified before the next one is granted. An observer may follow a
	// follower, which reports to the leader with another delay.
	leastTicks, leastTicksAtObserver = 2, 4
)

func (v *doctorVerb) server(ctx context.Context, p *host.Plugin, cfg recipes.SessionConfig, server string) (reached bool) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	cfg.Servers = []string{server}
	start := time.Now()
	s, err := p.Open(ctx, cfg)
	if err != nil {
		v.found("zookeeper", fail, serverAdvice(err), "%s: %v", server, err)
		return false
	}
	defer s.Close(ctx)
	status, advice := fine, ""
	if s.Timeout() != cfg.SessionTimeout {
		status, advice = warn, "the server's minSessionTimeout and maxSessionTimeout decide; by default 2 to 20 of its ticks"
	}
	v.found("zookeeper", status, advice, "%s: connected in %v, session timeout %v, requested %v", server, time.Since(start).Round(time.Millisecond), s.Timeout(), cfg.SessionTimeout)
	v.ticks(ctx, cfg.TLS, server, s.Timeout())
	v.chroot(ctx, s, cfg.Chroot, server)
	keeper := v.keeper(ctx, p, cfg, s)
	if !v.readOnly && v.lock(ctx, s, server) && !keeper { // a session does not try handoff there
		v.handoff(ctx, p, cfg, s)
	}
	return true
}

// chroot warns about a chroot that does not exist: ZooKeeper's own clients fail there, and ours create
// it.
func (v *doctorVerb) chroot(ctx context.Context, s recipes.Recipes, chroot, server string) {
	if chroot == "" {
		return
	}
	if _, err := s.Children(ctx, "/"); errors.Is(err, recipes.ErrNoNode) {
		v.found("chroot", warn, "correct it if it is mistyped; otherwise the first use creates it", "%s: %s does not exist", server, chroot)
	}
}

func serverAdvice(err error) string {
	switch {
	case errors.Is(err, recipes.ErrAuthFailed):
		return "check the auth block, or the sasl block. The servers' JAAS configuration has the mechanism, and their log the reason of a refusal"
	case errors.Is(err, recipes.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return "check that the server runs, that the address is right, and that no firewall and no TLS setting is in the way. Try in bash: (exec 3<>/dev/tcp/HOST/PORT && echo srvr >&3 && cat <&3)"
	}
	return exit.Advice(err)
}

// lock acquires and releases a lock, and compares the server's clock with the local one. It reports
// whether there was a lock.
func (v *doctorVerb) lock(ctx context.Context, s recipes.Recipes, server string) bool {
	before := time.Now()
	age, err := takeLock(ctx, s)
	if err != nil {
		advice := exit.Advice(err)
		if errors.Is(err, recipes.ErrAccessDenied) {
			advice = "give this user create and delete rights on the chroot, or change the chroot"
		}
		v.found("lock", fail, advice, "%s: %v", server, err)
		return false
	}
	v.found("lock", fine, "", "%s: acquired and released in %v", server, time.Since(before).Round(time.Millisecond))
	status, advice := fine, ""
	if age.Abs() > clockTolerance {
		status, advice = warn, "locks do not depend on clocks, but times in logs and in zkrecipes contenders do; run NTP on both"
	}
	v.found("clock", status, advice, "%s: differs by %v from the local clock", server, age.Round(time.Millisecond))
	return true
}

// handoff lets one session wait for a lock that another holds, and warns if the grant needed
// requests beside the release. Locks then work, but slower.
func (v *doctorVerb) handoff(ctx context.Context, p *host.Plugin, cfg recipes.SessionConfig, holder recipes.Recipes) {
	waiter, err := p.Open(ctx, cfg)
	if err == nil {
		defer waiter.Close(ctx)
		err = handOver(ctx, holder, waiter)
	}
	var stats recipes.Stats
	if err == nil {
		stats, err = waiter.Stats(ctx)
	}
	switch server := cfg.Servers[0]; {
	case err != nil:
		v.found("handoff", fail, exit.Advice(err), "%s: %v", server, err)
	case stats.Handoffs == 0 && stats.Fallbacks > 0:
		v.found("handoff", warn, "locks are safe and slower. Probably the servers compute digests by another algorithm than SHA1 (zookeeper.DigestAuthenticationProvider.digestAlg)", "%s: a release does not grant the lock to the next contender, which has to look", server)
	}
}

func handOver(ctx context.Context, holder, waiter recipes.Recipes) error {
	waits := make(chan recipes.Place, 1)
	l, err := holder.Lock(doctorPath, recipes.LockConfig{Data: []byte("zkrecipes doctor")})
	if err != nil {
		return err
	}
	next, err := waiter.Lock(doctorPath, recipes.LockConfig{Data: []byte("zkrecipes doctor"), Joined: func(p recipes.Place) { waits <- p }})
	if err != nil {
		return err
	}
	h, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	granted := make(chan error, 1)
	go func() {
		h, err := next.Acquire(ctx)
		if err == nil {
			err = h.Release(ctx)
		}
		granted <- err
	}()
	select {
	case <-waits:
		return errors.Join(h.Release(ctx), <-granted)
	case err := <-granted: // the session did not even wait
		return errors.Join(h.Release(ctx), err)
	}
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

// ticks compares the session timeout with the server's tick. A server that does not answer conf
// is not checked: by default ZooKeeper does not allow conf.
func (v *doctorVerb) ticks(ctx context.Context, security *recipes.TLS, server string, timeout time.Duration) {
	tick, observer := parseConf(verb.AskWord(ctx, security, server, "conf"))
	if tick <= 0 {
		return
	}
	role, need := "", leastTicks
	if observer {
		role, need = "observer, ", leastTicksAtObserver
	}
	status, advice := fine, ""
	if least := time.Duration(need) * tick; timeout < least {
		status, advice = warn, "a new holder may be granted a lock before the former one is notified: request a session timeout of at least "+least.String()
	}
	v.found("ticks", status, advice, "%s: %sthe session timeout is %.3g ticks of %v; at least %d are needed", server, role, timeout.Seconds()/tick.Seconds(), tick, need)
}

// parseConf returns the tick in an answer to conf, or 0, and whether the server is an observer.
func parseConf(answer string) (tick time.Duration, observer bool) {
	conf := fourletter.Pairs(answer, "=")
	ms, _ := strconv.Atoi(conf["tickTime"])
	return time.Duration(ms) * time.Millisecond, conf["peerType"] == "1"
}

// lines checks the paths: the contenders through the first of these servers, and orphans through each,
// because one can have a znode that the others do not have.
func (v *doctorVerb) lines(ctx context.Context, p *host.Plugin, cfg recipes.SessionConfig, servers []string) {
	failed := errors.New("no server was reached")
	found, shown := orphanage{}, false
	for _, server := range servers {
		if err := v.linesAt(ctx, p, cfg, servers, server, !shown, found); err != nil {
			failed = err
			continue
		}
		shown = true
	}
	if !shown {
		v.found("line", fail, serverAdvice(failed), "%v", failed)
	}
	v.orphans(found)
}

// linesAt checks the paths through one server. If show, it reports the contenders. It adds orphans to
// found. A read has no time limit, because a wait queue may be long: if the server does not answer, the
// session ends.
func (v *doctorVerb) linesAt(ctx context.Context, p *host.Plugin, cfg recipes.SessionConfig, servers []string, server string, show bool, found orphanage) error {
	opening, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	cfg.Servers = []string{server}
	s, err := p.Open(opening, cfg)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(ctx, serverTimeout)
		defer cancel()
		s.Close(ctx)
	}()
	for _, path := range v.paths {
		lines, err := s.Contenders(ctx, path)
		if err == nil {
			if show {
				v.line(path, lines)
			}
			err = found.add(ctx, s, cfg.TLS, servers, server, path, lines.Contenders)
		}
		if err != nil {
			v.found("line", fail, exit.Advice(err), "%s: %v", server, err)
		}
	}
	return nil
}

func (v *doctorVerb) line(path string, lines recipes.Lines) {
	var groups []string
	for _, d := range recipes.Dialects() {
		all := slices.DeleteFunc(slices.Clone(lines.Contenders), func(c recipes.Contender) bool {
			return cmp.Or(c.Dialect, recipes.ZooKeeper) != d // older plugins omit the dialect
		})
		if len(all) == 0 {
			continue
		}
		group := english.Count(len(all), "contender")
		if verb.OtherLibrary(d) {
			group = fmt.Sprintf("%s of %s, as the %s %s", group, d, kindOf(all[0]), all[0].Znode)
		}
		groups = append(groups, group)
	}
	status, advice, text := fine, "", path+": "+cmp.Or(strings.Join(groups, "; "), "no contenders")
	if join, refused := verdicts(lines.Verdicts); len(refused) > 0 {
		text += "\nthese share the wait queue: " + cmp.Or(strings.Join(join, ", "), "none")
		for _, met := range slices.Sorted(maps.Keys(refused)) {
			text += "\nthese exit with 125, because " + met + ": " + strings.Join(refused[met], ", ")
		}
		switch {
		case len(join) == 0:
			status, advice = warn, "no recipe excludes all of them, and they do not exclude each other: use the same recipe and -dialect for all clients of this path, or separate paths"
		case strings.Contains(join[0], dialectFlag):
			status, advice = warn, "to share the wait queue, use zkrecipes "+strings.Join(join, " or ")
		}
	}
	v.found("line", status, advice, "%s", text)
	for _, c := range persistent(lines.Contenders) {
		v.found("line", warn, removal(c), "%s: %s is persistent: it has the name of a contender (%s) and no session, and blocks all contenders behind it", path, c.Znode, kindOf(c))
	}
	if lines.Unknown > 0 {
		v.found("line", warn, "if they are contenders of another program, they and ours ignore each other: give that program another path", "%s: %s of programs that zkrecipes does not know", path, english.Count(lines.Unknown, "ephemeral sequential znode"))
	}
}

const dialectFlag = "-dialect "

// verdicts returns the verbs that would share the wait queue of a path, and those that would
// refuse it, grouped by the contender that they would find.
func verdicts(all []recipes.Verdict) (join []string, refused map[string][]string) {
	refused = map[string][]string{}
	for _, v := range all {
		name := verbOf[v.Kind]
		if verb.OtherLibrary(v.Dialect) {
			name += " " + dialectFlag + string(v.Dialect)
		}
		if v.Foreign == nil {
			join = append(join, name)
			continue
		}
		found := fmt.Sprintf("there is a %s %s at %s", v.Foreign.Dialect, v.Foreign.Recipe, v.Foreign.Znode)
		refused[found] = append(refused[found], name)
	}
	return join, refused
}

var verbOf = map[recipes.Kind]string{
	recipes.KindLock:         "lock",
	recipes.KindSharedLock:   "lock -shared",
	recipes.KindPriorityLock: "lock -priority",
	recipes.KindSemaphore:    "lock -n",
	recipes.KindElection:     "elect",
}
