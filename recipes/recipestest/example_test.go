package recipestest_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes/recipestest"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// To test another implementation, replace zookeeper.Open with its opener.
func ExampleRun() {
	testContract := func(t *testing.T) { // func TestContract(t *testing.T)
		recipestest.Run(t, recipestest.Env{
			Open:    zookeeper.Open,
			Servers: func(testing.TB) []string { return []string{"127.0.0.1:2181"} },
		})
	}
	_ = testContract
}
