package plugin_test

import (
	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// The whole main function of a plugin executable.
func ExampleServe() {
	plugin.Serve(zookeeper.Open)
}
