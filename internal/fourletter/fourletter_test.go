package fourletter_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/fourletter"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestAskDoesNotWaitForAConnectionThatStaysOpen(t *testing.T) {
	server, client := net.Pipe()
	defer server.Close()
	go func() {
		_, _ = server.Read(make([]byte, 4))
		_, _ = server.Write([]byte("This ZooKeeper instance is not currently serving requests\n"))
	}()
	dial := fourletter.Dial(func(context.Context, string, string) (net.Conn, error) { return client, nil })
	if answer, err := dial.Ask(t.Context(), "zk:2181", "srvr"); !errors.Is(err, fourletter.ErrNotServing) {
		t.Errorf("%q, %v; want ErrNotServing", answer, err)
	}
}
