package recipestest

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
)

// RunGroup runs the tests of one group.
func RunGroup(t *testing.T, name string, env Env) {
	for _, g := range groups() {
		for _, test := range g.tests {
			if g.name == name {
				t.Run(test.name, func(t *testing.T) { test.run(newFixture(t, env)) })
			}
		}
	}
}

// Connect opens a plain ZooKeeper session.
func Connect(ctx context.Context, t testing.TB, servers []string) *zk.Conn {
	t.Helper()
	return (&fixture{TB: t, ctx: ctx}).connect(servers)
}
