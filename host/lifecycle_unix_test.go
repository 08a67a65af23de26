//go:build unix

package host_test

import (
	"fmt"
	"os"
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

// A death is who gets which signal, and what it means.
type death struct {
	victim string
	signal syscall.Signal
	// atOnce: what the host held is free at once, because a plugin that runs has
	// closed the session. Otherwise it is free when ZooKeeper expires the session,
	// at its timeout.
	atOnce bool
	// told: the host lives and its session is lost, at once or before ZooKeeper
	// gives away what it held.
	told bool
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

// A point is what the host is doing at that moment.
type point struct {
	name, doing string
	// stuck: the server has carried out the request with this operation on the
	// contender's znode, and its answer does not come. The RPC has not returned.
	stuck zkserver.Op
	// gone: the request deletes the contender's znode.
	gone bool
	// behind: another contender is first in line.
	behind bool
	// brief: it runs with -short as well, and with each death in any run.
	brief bool
}

var points = []point{
	{name: "Acquire sent", doing: "lock", stuck: zkserver.OpCreate2},
	{name: "Acquire waits in line", doing: "lock", behind: true},
	{name: "lock held", doing: "lock", brief: true},
	{name: "Write sent", doing: "write", stuck: zkserver.OpMulti},
	{name: "Release sent", doing: "release", stuck: zkserver.OpMulti, gone: true},
}

const (
	// soon is "at once" on a busy machine: sooner than the longTimeout.
	soon = longTimeout * 2 / 3
	// longTimeout is for a session whose timeout must not matter, and
	// shortTimeout for one whose timeout the test waits for.
	longTimeout  = 30 * time.Second
	shortTimeout = 3 * time.Second
)

// TestLifecycle kills, ends and freezes the host, the plugin and both at each
// point of a lock. The plugin closes sessions, whatever they hold. In each case nothing of the host is left in
// ZooKeeper after the time in the table of deaths, and the next in line is granted.
// A host that lives is told, and a plugin does not outlive its host.
func TestLifecycle(t *testing.T) {
	for i, d := range deaths {
		for j, p := range points {
			t.Run(fmt.Sprintf("%s %s/%s", d.victim, signalName(d.signal), p.name), func(t *testing.T) {
				if testing.Short() && !p.brief {
					t.Skip("not a brief one")
				}
				if !p.brief && (i+i/3+j)%3 != 0 { // each point meets each signal
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

// lifecycle is one case.
type lifecycle struct {
	*testing.T
	death
	point
	timeout time.Duration
	server  *zkserver.Server
	reached chan struct{} // closed when the stuck request is

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
	} else if err := h.Release(ctx(l)); err != nil { // the path is there now
		l.Fatal(err)
	}
	own := len(l.ephemerals())
	l.stick()
	l.startHost()
	l.arrive(own)

	struck := time.Now()
	l.strike(l.signal)
	freed := l.free(own, struck)
	if l.told {
		l.knows(struck, freed)
	}
	if !l.behind {
		h := must.Get(first.Acquire(ctx(l)))(l)
		_ = h.Release(ctx(l))
	}
	l.end()
}

// knows checks when the host has lost its session.
func (l *lifecycle) knows(struck, freed time.Time) {
	nanoseconds, ok := strings.CutPrefix(l.host.line(l.T), "lost ")
	n, err := strconv.ParseInt(nanoseconds, 10, 64)
	if !ok || err != nil {
		l.Fatalf("the host says %q", nanoseconds)
	}
	lost := time.Unix(0, n)
	if d := lost.Sub(struck); l.signal != syscall.SIGSTOP && d > soon {
		l.Errorf("the host knows after %v", d)
	}
	// A Release that was sent frees what the host holds.
	if !l.atOnce && !l.gone && l.holds() && lost.After(freed) {
		l.Errorf("the host knows %v after ZooKeeper has given it away", lost.Sub(freed))
	}
}

// holds reports whether the host holds something. Then it is told long before
// ZooKeeper gives that away. A host that holds nothing relies on nothing, and its
// deadline is too close to the timeout for a busy machine.
func (l *lifecycle) holds() bool {
	return l.stuck != zkserver.OpCreate2 && !l.behind
}

// first is another contender of the same line, in this process.
func (l *lifecycle) first() recipes.Lock {
	s := must.Get(zookeeper.Open(ctx(l), recipes.SessionConfig{Servers: []string{l.server.Addr()}, SessionTimeout: time.Hour}))(l)
	l.Cleanup(func() { _ = s.Close(l.Context()) })
	return lockAt(l.T, s, "/p")
}

// stick keeps back the answer of one request.
func (l *lifecycle) stick() {
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
	l.cmd = exec.Command(self(l))
	l.cmd.Env = append(os.Environ(), quickExit, roleEnv+"=real host", r.env(), "TMPDIR="+shortTempDir(l.T),
		serverEnv+"="+l.server.Addr(), pointEnv+"="+l.doing, "TEST_TIMEOUT="+l.timeout.String())
	must.Do(l, l.cmd.Start())
	l.Cleanup(func() { _ = l.cmd.Process.Kill(); _ = l.cmd.Wait() })
	l.plugin = r.accept(l.T, "plugin")
	l.pluginPID = l.plugin.pid(l.T)
	l.host = r.accept(l.T, "host")
}

// arrive waits until the host is at the point.
func (l *lifecycle) arrive(own int) {
	switch {
	case l.stuck != 0:
		closes(l, "the point", l.reached)
	case !l.behind:
		if line := l.host.line(l.T); line != "there" {
			l.Fatalf("the host says %q", line)
		}
	}
	if l.gone {
		return
	}
	for end := time.Now().Add(patience); len(l.ephemerals()) == own; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			l.Fatal("the host does not stand in line")
		}
	}
}

func (l *lifecycle) strike(s syscall.Signal) {
	if l.victim != "plugin" {
		signal(l.T, l.cmd.Process.Pid, s)
	}
	if l.victim != "host" {
		_ = syscall.Kill(l.pluginPID, s) // it may have gone with its host
	}
}

// free waits until nothing of the host is left in ZooKeeper.
func (l *lifecycle) free(own int, struck time.Time) (freed time.Time) {
	limit := l.timeout + soon
	if l.atOnce {
		limit = soon
	}
	for len(l.ephemerals()) > own {
		if time.Since(struck) > limit {
			l.Fatalf("after %v there still is %v", limit, l.ephemerals())
		}
		time.Sleep(time.Millisecond)
	}
	freed = time.Now()
	l.Logf("free after %v of %v", freed.Sub(struck).Round(time.Millisecond), l.timeout)
	return freed
}

func (l *lifecycle) ephemerals() (paths []string) {
	for _, n := range l.server.Tree() {
		if n.Stat.EphemeralOwner != 0 && strings.HasPrefix(n.Path, "/p/") {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// end kills the host if it still runs. Then its plugin must end.
func (l *lifecycle) end() {
	if l.signal == syscall.SIGSTOP {
		l.strike(syscall.SIGCONT)
	}
	_ = l.cmd.Process.Kill()
	l.plugin.died(l.T)
}
