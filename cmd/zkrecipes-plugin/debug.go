package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// serveDebug serves until it is interrupted, and prints what a host needs in
// its environment, in a form that a shell takes.
func serveDebug(stdout io.Writer, limits plugin.Limits) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return plugin.Debug(ctx, zookeeper.Open, func(r plugin.Reattach) {
		value, _ := json.Marshal(r) // numbers and strings
		fmt.Fprintf(stdout, "# Not encrypted, not authenticated: for debugging only. Start the host with\nexport %s='%s'\n", plugin.ReattachEnv, value)
	}, limits, resume)
}

// describe prints what the plugin is, in JSON, for programs that choose between
// plugins without starting them.
func describe(stdout io.Writer) error {
	e := json.NewEncoder(stdout)
	e.SetIndent("", "  ")
	return e.Encode(plugin.Describe(resume))
}
