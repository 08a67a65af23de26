package plugin

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
)

// On a machine that starts hundreds of plugins at once, a host may get no processor for long between
// the plugin's handshake and Attach. The plugin waits for it, but not for ever: the host may have
// died.
func TestAPluginWaitsForItsHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		p := &process{server: server.New(server.Config{}), logger: hclog.NewNullLogger(), stopped: make(chan struct{})}
		p.watch(grpc.NewServer(), make(chan os.Signal))
		if waited := time.Since(begun); !p.unattended || waited != time.Minute { // host.Config.StartTimeout is a minute by default
			t.Errorf("it has ended after %v, unattended: %v", waited, p.unattended)
		}
	})
}
