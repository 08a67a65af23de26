//go:build unix

package host_test

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// debugged starts a plugin as for a debugger, and sets the variable that names it.
func debugged(t testing.TB) *exec.Cmd {
	t.Helper()
	r := listen(t)
	cmd := startRole(t, "debugged", r.env(), "TMPDIR="+shortTempDir(t))
	t.Setenv(handshake.ReattachEnv, r.accept(t, "debugged").first)
	return cmd
}

// unencrypted is a plugin over a socket without TLS. The difference to a launched plugin is
// the cost of mutual TLS.
func unencrypted(b *testing.B) *host.Plugin {
	debugged(b)
	return launch(b, host.Config{})
}

func TestHostUsesAPluginInADebugger(t *testing.T) {
	cmd := debugged(t)
	out := &logged{}
	cfg := host.Config{Path: "no-such-plugin", Logger: hclog.New(&hclog.LoggerOptions{Output: out})}
	for range 2 { // Close leaves it running
		p := launch(t, cfg)
		if p.PID() != cmd.Process.Pid {
			t.Errorf("process %d; want %d", p.PID(), cmd.Process.Pid)
		}
		s := open(t, p, time.Minute)
		h := acquire(t, s)
		must.Report(t, p.Close(ctx(t)))
		closes(t, "Exited", p.Exited())
		if !errors.Is(h.Err(), recipes.ErrClosed) {
			t.Error(h.Err())
		}
	}
	if !strings.Contains(out.String(), "no TLS, no checksum") {
		t.Errorf("no warning in %q", out.String())
	}
}

func TestPluginInADebuggerDies(t *testing.T) {
	cmd := debugged(t)
	p := launch(t, host.Config{})
	h := acquire(t, open(t, p, time.Minute))
	signal(t, cmd.Process.Pid, syscall.SIGKILL)
	closes(t, "Done", h.Done())
	if !errors.Is(h.Err(), recipes.ErrPluginLost) {
		t.Error(h.Err())
	}
	closes(t, "Exited", p.Exited())
}

func TestReattachThatCannotBeUsed(t *testing.T) {
	good := `{"protocol_version":1,"pid":1,"network":"unix","address":"/nowhere/plugin"}`
	for _, test := range []struct{ name, value, checksum, want string }{
		{"garbage", "127.0.0.1:1", "", "not what zkrecipes-plugin -debug prints"},
		{"no address", `{"protocol_version":1,"network":"unix"}`, "", "no address"},
		{"another protocol", strings.Replace(good, ":1", ":2", 1), "", "protocol version 2, this host 1"},
		{"checksum", good, strings.Repeat("0", 64), "cannot be verified"},
		{"no plugin there", good, "", "/nowhere/plugin"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(handshake.ReattachEnv, test.value)
			_, err := host.Launch(ctx(t), host.Config{Checksum: test.checksum, StartTimeout: time.Second})
			if !errors.Is(err, host.ErrReattach) || !strings.Contains(err.Error(), test.want) {
				t.Error(err)
			}
		})
	}
}
