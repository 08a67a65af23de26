package interop_test

import (
	"fmt"
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
	if os.Getenv(queueEnv) != "" {
		if err := queueProgram(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(relayEnv) != "" {
		serveRelay(os.Args[1:])
	}
	leaktest.Main(ensembletest.Owner{Tests: withClasses{m}})
}

// withClasses runs tests with a folder for the Java classes that they compile.
type withClasses struct{ tests interface{ Run() int } }

var classes string

func (w withClasses) Run() int {
	var err error
	if classes, err = os.MkdirTemp("", "interop-"); err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(classes) }()
	return w.tests.Run()
}
