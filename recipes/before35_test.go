package recipes_test

import (
	"context"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// ZooKeeper 3.4 knows neither create2 nor containers. Every recipe works there, and
// its parents are plain znodes, which stay.
func TestRecipesOnAServerBefore35(t *testing.T) {
	for recipe, use := range uses {
		t.Run(recipe, func(t *testing.T) {
			server, err := zkserver.Listen(zkserver.Config{Before35: true})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			ctx := t.Context()
			session, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{server.Addr()}, Chroot: "/app"})
			if err != nil {
				t.Fatal(err)
			}
			use(ctx, func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}, session, "/below/"+strings.ReplaceAll(strings.ToLower(recipe), " ", "-"))
			if n := server.Counters().Requests[zkserver.OpCreate2]; n > 1 {
				t.Errorf("create2 was asked for %d times, and the first ended the connection", n)
			}
			if err := session.Close(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
			}
			for range 3 { // it goes up one node at a time
				server.RunContainerCheck()
			}
			stays := false
			for _, node := range server.Tree() {
				stays = stays || node.Path == "/app/below"
			}
			if !stays {
				t.Error("the parent was a container")
			}
		})
	}
}
