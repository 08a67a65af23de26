package main

import (
	"context"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// launchDirect calls the library.
func launchDirect(context.Context, settings, recipes.SessionConfig, *cleanup, say) (bench.Transport, error) {
	return bench.Transport{Open: zookeeper.Open}, nil
}
