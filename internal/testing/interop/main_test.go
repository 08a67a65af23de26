package interop_test

import (
	"os"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

// peerEnv makes the test binary a contender that uses our recipes.
const peerEnv = "ZKRECIPES_INTEROP_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) != "" {
		contend(os.Args[1:])
	}
	leaktest.Main(ensembletest.Owner{Tests: withClasses{m}})
}

// withClasses runs tests and removes the Java classes that they compiled.
type withClasses struct{ tests interface{ Run() int } }

func (w withClasses) Run() int {
	defer func() { _ = os.RemoveAll(classes.dir) }()
	return w.tests.Run()
}
