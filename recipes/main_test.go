package recipes_test

import (
	"context"
	"log"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func TestMain(m *testing.M) { leaktest.Main(served{m}) }

// served runs the examples beside a ZooKeeper server in this process.
type served struct{ tests *testing.M }

func (s served) Run() int {
	server, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	servers = []string{server.Addr()}
	return s.tests.Run()
}

// servers are the addresses of the servers for the examples.
var servers []string

// open opens a session. The package example shows the code of an application.
func open(ctx context.Context) recipes.Client {
	session, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: servers})
	if err != nil {
		log.Fatal(err)
	}
	return session
}
