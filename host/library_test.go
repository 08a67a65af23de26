package host_test

import (
	"context"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// BenchmarkOverALibrary measures the cost of the plugin over that of the library: a lock
// acquired and released on a real server, through a plugin and by the library. The difference
// of cpu-ns/op is the plugin's.
func BenchmarkOverALibrary(b *testing.B) {
	server := ensembletest.Start(b, ensembletest.Quick(1))
	for _, via := range []string{"library", "plugin"} {
		b.Run("via="+via, func(b *testing.B) {
			open, pid := recipes.Opener(zookeeper.Open), 0
			if via == "plugin" {
				p := launch(b, config(b, "real plugin"))
				open, pid = p.Open, p.PID()
			}
			s := must.Get(open(ctx(b), recipes.SessionConfig{Servers: server.Addrs()}))(b)
			b.Cleanup(func() { _ = s.Close(context.Background()) })
			measured(b, pid, func() { acquireAndRelease(b, s) })
		})
	}
}
