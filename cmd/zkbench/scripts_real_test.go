package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
)

// TestScriptsOnARealServer runs the scripts that need a real ZooKeeper, which is
// $SERVERS.
func TestScriptsOnARealServer(t *testing.T) {
	t.Parallel()
	e := ensembletest.Shared(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "real"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("SERVERS", e.Connect())
			return withGo(env)
		},
	})
}
