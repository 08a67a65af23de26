package main

import (
	"context"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// launchPlugin starts one plugin process, which all sessions go through.
func launchPlugin(ctx context.Context, s settings, _ recipes.SessionConfig, end *cleanup, say say) (bench.Transport, error) {
	path, err := findPlugin(ctx, s.plugin, end, say)
	if err != nil {
		return bench.Transport{}, err
	}
	p, err := host.Launch(ctx, host.Config{Path: path})
	if err != nil {
		return bench.Transport{}, err
	}
	end.add(func() error { return p.Close(context.Background()) })
	return bench.Transport{Open: p.Open, Processes: func() []int { return []int{p.PID()} }}, nil
}
