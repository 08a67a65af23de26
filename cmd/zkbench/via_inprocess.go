package main

import (
	"context"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// launchInProcess calls the library through gRPC in memory: what remains of the
// plugin's cost when there is no second process.
func launchInProcess(_ context.Context, _ settings, _ recipes.SessionConfig, end *cleanup, _ say) (bench.Transport, error) {
	p, err := host.InProcess(zookeeper.Open)
	if err != nil {
		return bench.Transport{}, err
	}
	end.add(func() error { return p.Close(context.Background()) })
	return bench.Transport{Open: p.Open}, nil
}
