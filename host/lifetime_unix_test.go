//go:build unix

package host_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// outlivedTimeout is the session timeout of an outlived host.
const outlivedTimeout = 8 * time.Second

// outlived is a host that has started a child.
type outlived struct {
	*testing.T
	server              *zkserver.Server
	contacts            atomic.Int64 // requests so far
	closed              atomic.Bool  // the plugin has closed the session
	reports             *reports
	cmd                 *exec.Cmd
	host, plugin, child *reporter
}

func newOutlived(t *testing.T) *outlived {
	s := embedded(t)
	o := &outlived{T: t, server: s, reports: listen(t)}
	s.SetFault(func(r zkserver.Request) (none zkserver.Fault) {
		o.contacts.Add(1)
		if r.Op == zkserver.OpCloseSession {
			o.closed.Store(true)
		}
		return none
	})
	o.cmd = startRole(t, "outlived host", o.reports.env(), "TMPDIR="+shortTempDir(t),
		serverEnv+"="+s.Addr(), timeoutEnv+"="+outlivedTimeout.String())
	o.plugin = o.reports.accept(t, "plugin")
	o.child = o.reports.accept(t, "child")
	o.host = o.reports.accept(t, "host")
	return o
}

func (o *outlived) held() bool { return len(ephemerals(o.server, "/p")) > 0 }

// keepsWithoutHost checks that the plugin keeps the session after the host's death. A plugin
// that closes the session does so before the next few pings.
func (o *outlived) keepsWithoutHost() {
	o.Helper()
	o.host.died(o.T)
	for until := o.contacts.Load() + 4; o.contacts.Load() < until; time.Sleep(time.Millisecond) {
		if !o.held() {
			o.Fatal("the lock is free, although the host's child runs")
		}
	}
}

// TestLifetime lets processes die in different orders, and checks when the lock is free.
func TestLifetime(t *testing.T) {
	kill := func(o *outlived) { _ = o.cmd.Process.Kill() }
	for _, test := range []struct {
		name    string
		expires bool // the session expires instead of being closed
		dies    func(*outlived)
		// then frees the lock. nil means the exit of the child.
		then func(*outlived)
	}{
		{name: "the host", dies: kill},
		{name: "the plugin, and then the host", dies: func(o *outlived) {
			signal(o.T, o.plugin.pid(o), syscall.SIGKILL)
			o.plugin = o.reports.accept(o.T, "plugin")
			if line := o.host.line(o.T); line != "resumed" {
				o.Fatal(line)
			}
			kill(o)
		}},
		{name: "the host, and the plugin by SIGKILL", expires: true, dies: kill, then: func(o *outlived) {
			signal(o.T, o.plugin.pid(o), syscall.SIGKILL)
			o.plugin.died(o.T)
			if !o.held() {
				o.Error("the lock is free before the session timeout")
			}
			for _, id := range o.server.Sessions() {
				o.server.ExpireSession(id)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := newOutlived(t)
			test.dies(o)
			o.keepsWithoutHost()
			if test.then != nil {
				test.then(o)
			} else {
				signal(t, o.child.pid(t), syscall.SIGKILL)
			}
			eventually(t, func() string { return unless(!o.held(), "the lock is not free") })
			o.plugin.died(t)
			if o.closed.Load() == test.expires {
				t.Errorf("the plugin closed the session: %v", o.closed.Load())
			}
			if test.then != nil {
				signal(t, o.child.pid(t), syscall.SIGKILL)
			}
		})
	}
}

// TestPluginRefusesALifetimeThatIsNoPipe: such a Lifetime would not keep the sessions.
func TestPluginRefusesALifetimeThatIsNoPipe(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	null := must.Get(os.Open(os.DevNull))(t)
	defer null.Close()
	cookie := handshake.Config()
	for name, test := range map[string]struct {
		value string
		file  *os.File
	}{
		"writing end":   {"3", writer},
		"another file":  {"3", null},
		"closed":        {"3", nil},
		"stdin":         {"0", nil},
		"no descriptor": {"x", reader},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			cmd := exec.Command(self(t))
			cmd.Env = append(os.Environ(), quickExit, roleEnv+"=real plugin", cookie.MagicCookieKey+"="+cookie.MagicCookieValue,
				"PLUGIN_PROTOCOL_VERSIONS=1", handshake.LifetimeEnv+"="+test.value)
			cmd.Stderr = &stderr
			if test.file != nil {
				cmd.ExtraFiles = []*os.File{test.file}
			}
			err := cmd.Run()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 6 || !bytes.Contains(stderr.Bytes(), []byte(handshake.LifetimeEnv+"="+test.value)) {
				t.Errorf("%v, %s", err, &stderr)
			}
		})
	}
}
