package ensembletest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
)

// shared holds the servers of this test process. It is global because the tests of a
// package share nothing else.
var shared struct {
	sync.Mutex
	owner    *Owner // runs the tests and stops the servers
	ensemble *ensemble.Ensemble
	err      error
}

// Shared returns the servers of all tests of the package: one, or as many as its [Owner]
// says, with a [Quick] configuration. The first call starts them. Each test must use its
// own paths, and must not freeze or kill a server.
//
// The package's TestMain must run an [Owner], which stops them. A test that checks for
// leaked goroutines itself calls Shared first and then goleak.IgnoreCurrent.
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
		return nil, fmt.Errorf("the shared ZooKeeper would never be stopped: add to this package func TestMain(m *testing.M) { leaktest.Main(ensembletest.Owner{Tests: m}) }")
	}
	if shared.ensemble == nil && shared.err == nil {
		shared.ensemble, shared.err = ensemble.Start(context.Background(), Quick(max(1, shared.owner.Servers)))
	}
	return shared.ensemble, shared.err
}

// Owner runs tests and then stops the shared servers, if any:
//
//	func TestMain(m *testing.M) { leaktest.Main(ensembletest.Owner{Tests: m}) }
type Owner struct {
	Tests   interface{ Run() int }
	Servers int // how many Shared starts; 0 means 1
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
