package zookeeper_test

import (
	"context"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func TestMain(m *testing.M) { leaktest.Main(ensembletest.Owner{Tests: m}) }

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog.Patience)
	t.Cleanup(cancel)
	return ctx
}

func embedded(t *testing.T) *zkserver.Server {
	t.Helper()
	srv, err := zkserver.Listen(zkserver.Config{MinSessionTimeout: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

func open(t *testing.T, srv *zkserver.Server) recipes.Client {
	t.Helper()
	return openAt(t, srv.Addr())
}

func openAt(t *testing.T, addr string) recipes.Client {
	t.Helper()
	s, err := zookeeper.Open(bounded(t), recipes.SessionConfig{
		Servers:   []string{addr},
		MaxPacket: 64 << 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), watchdog.Patience)
		defer cancel()
		s.Close(ctx)
	})
	return s
}
