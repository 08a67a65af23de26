package host

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestAnIdleConnectionStaysOpen: gRPC closes a connection without calls after half an hour,
// and dials again for the next call. The socket may have been deleted by then.
func TestAnIdleConnectionStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := must.Get(InProcess(zookeeper.Open))(t)
		conn := p.peer.(*inMemory).conn
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if state := conn.GetState(); state != connectivity.Ready {
			t.Errorf("the connection is %v", state)
		}
		must.Report(t, p.Close(t.Context()))
	})
}
