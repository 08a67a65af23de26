package ensembletest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
)

// shared is the servers of this test process. It is global state because the tests
// of a package have nothing else in common.
var shared struct {
	sync.Mutex
	owner    *Owner // which runs, and will stop the servers
	ensemble *ensemble.Ensemble
	err      error
}

// Shared is servers of configuration [Quick] for all tests of the package: one, or as
// many as its [Owner] says. The first call starts them. Each test uses paths of its own,
// and no test freezes or kills a server.
//
// The package's TestMain must run an [Owner], which stops them. A test that checks
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
	if shared.owner == nil {
		return nil, fmt.Errorf("nobody would stop the shared ZooKeeper: let this package have func TestMain(m *testing.M) { leaktest.Main(ensembletest.Owner{Tests: m}) }")
	}
	if shared.ensemble == nil && shared.err == nil {
		shared.ensemble, shared.err = ensemble.Start(context.Background(), Quick(max(1, shared.owner.Servers)))
	}
	return shared.ensemble, shared.err
}

// Owner runs tests and then stops the shared servers, if there are any:
//
//	func TestMain(m *testing.M) { leaktest.Main(ensembletest.Owner{Tests: m}) }
type Owner struct {
	Tests   interface{ Run() int }
	Servers int // of Shared; 0 is one
}

// Run runs the tests and returns their exit code.
func (o Owner) Run() int {
	shared.Lock()
	shared.owner = &o
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
	shared.owner = nil
	e := shared.ensemble
	shared.ensemble = nil
	if e == nil {
		return nil
	}
	return e.Stop()
}
