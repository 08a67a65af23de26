//go:build unix

package host_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// unencrypted is a plugin over a socket without TLS, as for debugging. The difference to
// a plugin that is launched is the cost of AutoMTLS.
func unencrypted(b *testing.B) *host.Plugin {
	b.Helper()
	r := listen(b)
	cmd := exec.Command(self(b))
	cmd.Env = append(os.Environ(), quickExit, roleEnv+"=debugged", r.env())
	must.Do(b, cmd.Start())
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	b.Setenv(handshake.ReattachEnv, r.accept(b, "debugged").first)
	p := must.Get(host.Launch(b.Context(), host.Config{}))(b)
	b.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}
