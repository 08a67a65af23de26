package ensembletest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
)

// shared is the one server of this test process. It is global state because the tests
// of a package have nothing else in common.
var shared struct {
	sync.Mutex
	owned    bool // an Owner runs and will stop the server
	ensemble *ensemble.Ensemble
	err      error
}

// Shared is one server, of configuration [Quick], for all tests of the package. The
// first call starts it. Each test uses paths of its own, and no test freezes or kills
// it.
//
// The package's TestMain must run an [Owner], which stops it. A test that checks
// for leaked goroutines by itself calls Shared first and then goleak.IgnoreCurrent.
func Shared(tb testing.TB) *ensemble.Ensemble {
	tb.Helper()
	Require(tb)
	e, err := startShared()
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func startShared() (*ensemble.Ensemble, error) {
	shared.Lock()
	defer shared.Unlock()
	if !shared.owned {
		return nil, fmt.Errorf("nobody would stop the shared ZooKeeper: let this package have func TestMain(m *testing.M) { leaktest.Main(ensembletest.Owner{Tests: m}) }")
	}
	if shared.ensemble == nil && shared.err == nil {
		shared.ensemble, shared.err = ensemble.Start(context.Background(), Quick(1))
	}
	return shared.ensemble, shared.err
}

// Owner runs tests and then stops the shared server, if there is one:
//
//	func TestMain(m *testing.M) { leaktest.Main(ensembletest.Owner{Tests: m}) }
type Owner struct{ Tests interface{ Run() int } }

// Run runs the tests and returns their exit code.
func (o Owner) Run() int {
	shared.Lock()
	shared.owned = true
	shared.Unlock()
	code := o.Tests.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the shared ZooKeeper:", err)
		code = max(code, 1)
	}
	return code
}

func stopShared() error {
	shared.Lock()
	defer shared.Unlock()
	shared.owned = false
	e := shared.ensemble
	shared.ensemble = nil
	if e == nil {
		return nil
	}
	return e.Stop()
}
