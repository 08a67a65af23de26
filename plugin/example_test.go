package plugin_test

import (
	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// The whole main function of a plugin executable.
func ExampleServe() {
	plugin.Serve(zookeeper.Open)
}

// A plugin with lower limits.
func ExampleServe_limits() {
	plugin.Serve(zookeeper.Open, plugin.Limits{Sessions: 100, Grants: 1000})
}
