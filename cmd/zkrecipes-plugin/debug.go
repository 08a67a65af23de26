package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// serveDebug serves until it is interrupted, and prints the environment variable for the host
// as a shell command.
func serveDebug(stdout io.Writer, limits plugin.Limits) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return plugin.Debug(ctx, zookeeper.Open, func(name, value string) {
		fmt.Fprintf(stdout, "# Not encrypted, not authenticated: for debugging only. Start the host with\nexport %s='%s'\n", name, value)
	}, limits, resume)
}
