//go:build unix

package host_test

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A death is a signal to a process, and its consequences.
type death struct {
	victim string
	signal syscall.Signal
	// atOnce: the host's hold is free at once, because a running plugin has closed the
	// session. Otherwise ZooKeeper frees it at the session timeout.
	atOnce bool
	// survives: the host lives, and its session is lost at once, or before ZooKeeper
	// grants the hold to another client.
	survives bool
}

var deaths = []death{
	{"host", syscall.SIGKILL, true, false},
	{"host", syscall.SIGTERM, true, false},
	{"host", syscall.SIGSTOP, false, false},
	{"plugin", syscall.SIGKILL, false, true},
	{"plugin", syscall.SIGTERM, true, true},
	{"plugin", syscall.SIGSTOP, false, true},
	{"both", syscall.SIGKILL, false, false},
	{"both", syscall.SIGTERM, true, false},
	{"both", syscall.SIGSTOP, false, false},
}

// A point is a call of the host that is interrupted by a death.
type point struct {
	name, call string
	// stuck: the server has carried out the request with this operation on the contender's
	// znode, and withholds the reply. The RPC has not returned.
	stuck zkserver.Op
	// gone: the request deletes the contender's znode.
	gone bool
	// behind: another contender holds the lock.
	behind bool
	// brief: the point runs with -short too, and with each death in every run.
	brief bool
}

var points = []point{
	{name: "Acquire sent", call: "lock", stuck: zkserver.OpCreate2},
	{name: "Acquire waits in line", call: "lock", behind: true},
	{name: "lock held", call: "lock", brief: true},
	{name: "Write sent", call: "write", stuck: zkserver.OpMulti},
	{name: "Release sent", call: "release", stuck: zkserver.OpMulti, gone: true},
}

const (
	// soon is "at once" on a busy machine: sooner than longTimeout.
	soon = longTimeout * 2 / 3
	// longTimeout is for sessions that must not expire, shortTimeout for those whose
	// timeout the test waits for.
	longTimeout  = 30 * time.Second
	shortTimeout = 3 * time.Second
)

// TestLifecycle kills, terminates and freezes the host, the plugin and both at each point of
// a lock. In each case nothing of the host is left in ZooKeeper after the time in the table
// of deaths, and the next waiter is granted. The session of a host that survives is lost. No
// plugin survives its host.
func TestLifecycle(t *testing.T) {
	for i, d := range deaths {
		for j, p := range points {
			t.Run(fmt.Sprintf("%s %s/%s", d.victim, signalName(d.signal), p.name), func(t *testing.T) {
				if testing.Short() && !p.brief {
					t.Skip("takes too long for -short")
				}
				if !p.brief && (i+i/3+j)%3 != 0 { // the remaining cases still combine each point with each signal
					testall.Require(t)
				}
				t.Parallel()
				newLifecycle(t, d, p).run()
			})
		}
	}
}

func signalName(s syscall.Signal) string {
	return map[syscall.Signal]string{syscall.SIGKILL: "KILL", syscall.SIGTERM: "TERM", syscall.SIGSTOP: "STOP"}[s]
}

// lifecycle is a case of TestLifecycle.
type lifecycle struct {
	*testing.T
	death
	point
	timeout time.Duration
	server  *zkserver.Server
	reached chan struct{} // closed when the server has the stuck request

	cmd          *exec.Cmd
	host, plugin *reporter
	pluginPID    int
}

func newLifecycle(t *testing.T, d death, p point) *lifecycle {
	l := &lifecycle{T: t, death: d, point: p, timeout: shortTimeout, reached: make(chan struct{})}
	if d.atOnce {
		l.timeout = longTimeout
	}
	l.server = embedded(t)
	return l
}

func (l *lifecycle) run() {
	first := l.first()
	h := must.Get(first.Acquire(ctx(l)))(l)
	if l.behind {
		defer func() { _ = h.Release(ctx(l)) }()
	} else {
		must.Do(l, h.Release(ctx(l))) // the hold has created the path
	}
	others := len(ephemerals(l.server, "/p"))
	l.keepReply()
	l.startHost()
	l.arrive(others)

	struck := time.Now()
	l.strike(l.signal)
	freed := l.free(others, struck)
	if l.survives {
		l.losesInTime(struck, freed)
	}
	if !l.behind {
		h := must.Get(first.Acquire(ctx(l)))(l)
		_ = h.Release(ctx(l))
	}
	l.end()
}

// losesInTime checks that the host loses its session in time.
func (l *lifecycle) losesInTime(struck, freed time.Time) {
	nanoseconds, ok := strings.CutPrefix(l.host.line(l.T), "lost ")
	n, err := strconv.ParseInt(nanoseconds, 10, 64)
	if !ok || err != nil {
		l.Fatalf("the host reports %q", nanoseconds)
	}
	lost := time.Unix(0, n)
	if d := lost.Sub(struck); l.signal != syscall.SIGSTOP && d > soon {
		l.Errorf("the session is lost after %v", d)
	}
	// A Release that was sent frees the hold.
	if !l.atOnce && !l.gone && l.holds() && lost.After(freed) {
		l.Errorf("the session is lost %v after ZooKeeper has freed the lock", lost.Sub(freed))
	}
}

// holds reports whether the host holds the lock. Then its session is lost long before
// ZooKeeper frees the lock. If it holds nothing, its deadline is so close to the timeout that
// a busy machine can miss it.
func (l *lifecycle) holds() bool {
	return l.stuck != zkserver.OpCreate2 && !l.behind
}

// first is another contender of the same path, in this process.
func (l *lifecycle) first() recipes.Lock {
	s := must.Get(zookeeper.Open(ctx(l), recipes.SessionConfig{Servers: []string{l.server.Addr()}, SessionTimeout: time.Hour}))(l)
	l.Cleanup(func() { _ = s.Close(l.Context()) })
	return lockAt(l.T, s, "/p")
}

// keepReply withholds the reply of the stuck request.
func (l *lifecycle) keepReply() {
	if l.stuck == 0 {
		return
	}
	never := make(chan struct{})
	l.Cleanup(func() { close(never) })
	var once sync.Once
	l.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
		if r.Op == l.stuck && strings.HasPrefix(r.Path, "/p/") {
			once.Do(func() { close(l.reached); f.HoldReply = never })
		}
		return f
	})
}

func (l *lifecycle) startHost() {
	r := listen(l.T)
	l.cmd = startRole(l.T, "real host", r.env(), "TMPDIR="+shortTempDir(l.T),
		serverEnv+"="+l.server.Addr(), callEnv+"="+l.call, timeoutEnv+"="+l.timeout.String())
	l.plugin = r.accept(l.T, "plugin")
	l.pluginPID = l.plugin.pid(l.T)
	l.host = r.accept(l.T, "host")
}

// arrive waits until the host is at the point. others is the number of znodes without the
// host's.
func (l *lifecycle) arrive(others int) {
	switch {
	case l.stuck != 0:
		closes(l, "the point", l.reached)
	case !l.behind:
		if line := l.host.line(l.T); line != "there" {
			l.Fatalf("the host reports %q", line)
		}
	}
	if !l.gone {
		eventually(l, func() string { return unless(len(ephemerals(l.server, "/p")) > others, "the host has no znode") })
	}
}

func (l *lifecycle) strike(s syscall.Signal) {
	if l.victim != "plugin" {
		signal(l.T, l.cmd.Process.Pid, s)
	}
	if l.victim != "host" {
		_ = syscall.Kill(l.pluginPID, s) // the plugin may have exited with its host
	}
}

// free waits until nothing of the host is left in ZooKeeper.
func (l *lifecycle) free(others int, struck time.Time) (freed time.Time) {
	limit := l.timeout + soon
	if l.atOnce {
		limit = soon
	}
	for len(ephemerals(l.server, "/p")) > others {
		if time.Since(struck) > limit {
			l.Fatalf("after %v, the host still has %v", limit, ephemerals(l.server, "/p"))
		}
		time.Sleep(time.Millisecond)
	}
	freed = time.Now()
	l.Logf("free after %v of %v", freed.Sub(struck).Round(time.Millisecond), l.timeout)
	return freed
}

// end kills the host if it still runs. Then its plugin must exit.
func (l *lifecycle) end() {
	if l.signal == syscall.SIGSTOP {
		l.strike(syscall.SIGCONT)
	}
	_ = l.cmd.Process.Kill()
	l.plugin.died(l.T)
}
