package look

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestContenderIsKnownByItsGUID, as a waiter and as a holder, whatever the name of the path.
func TestContenderIsKnownByItsGUID(t *testing.T) {
	const id = "_c_0f8fad5b-d9cb-469f-a165-70867728950e"
	for _, znode := range []string{
		"/p/" + id + "-read-06-0000000001", "/p/" + id + "-reading-06-0000000001",
		"/may-read/or-write/" + id + "-write-06-0000000001", "/may-read/or-write/" + id + "-writing-06-0000000001",
	} {
		if got := guid(znode); got != id {
			t.Errorf("%s is known by %q", znode, got)
		}
	}
}
