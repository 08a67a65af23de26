// Command zkrecipes-plugin is the zkrecipes plugin: it serves the ZooKeeper recipes over gRPC
// to the host application that launches it (see package host). When a person starts it, it
// prints its usage.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/version"
	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func main() {
	var limits plugin.Limits
	if code, done := run(os.Args[1:], &limits, os.Stdout, os.Stderr); done {
		os.Exit(code)
	}
	plugin.Serve(zookeeper.Open, limits, resume)
}

var resume = plugin.Resume(zookeeper.Resume)

// run handles the command line of a person. done is false if a host has launched the program,
// or if there is nothing to handle.
func run(args []string, limits *plugin.Limits, stdout, stderr io.Writer) (code int, done bool) {
	flags := flag.NewFlagSet("zkrecipes-plugin", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "usage: zkrecipes-plugin [-max-... number] [-debug | describe | version]\n\n"+plugin.About("zkrecipes-plugin")+"\n")
		flags.PrintDefaults()
	}
	showVersion := flags.Bool("version", false, "print the version and the protocol version, and exit; \"version\" does too")
	debug := flags.Bool("debug", false, "serve hosts that have the environment variable that is printed, until interrupted,\nwithout TLS: for running the plugin in a debugger")
	defineLimits(flags, limits)
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return 0, true
	case err != nil:
		return 2, true
	case flags.NArg() == 1 && flags.Arg(0) == "describe":
		return report(stderr, describe(stdout)), true
	case *showVersion, flags.NArg() == 1 && flags.Arg(0) == "version":
		fmt.Fprintf(stdout, "%s, protocol %d\n", version.Line("zkrecipes-plugin"), handshake.Version)
		return 0, true
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "zkrecipes-plugin takes no arguments but describe and version; it was given %q\n", flags.Args())
		flags.Usage()
		return 2, true
	case *debug:
		return report(stderr, serveDebug(stdout, *limits)), true
	}
	return 0, false
}

func report(stderr io.Writer, err error) (code int) {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "zkrecipes-plugin: %v\n", err)
	return 1
}

type description struct {
	// Version is the version of the build.
	Version string `json:"version"`
	// ProtocolVersions are the versions of zkrecipes that it offers in go-plugin's handshake.
	ProtocolVersions []int `json:"protocol_versions"`
	// Capabilities are the recipes and other features that it supports, as in Info.
	Capabilities []string `json:"capabilities"`
	// Platform is the operating system and architecture, by Go's names.
	Platform string `json:"platform"`
	// Go is the version of Go that built it.
	Go string `json:"go"`
}

// describe prints the description in JSON, for programs that choose between plugins without
// starting them.
func describe(stdout io.Writer) error {
	e := json.NewEncoder(stdout)
	e.SetIndent("", "  ")
	return e.Encode(description{
		Version: version.String(), ProtocolVersions: []int{handshake.Version},
		Capabilities: server.Config{Resume: zookeeper.Resume}.Capabilities(),
		Platform:     runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	})
}

// defineLimits defines flags for the limits. An operator makes the host pass them to the
// plugin (host.Config.Args).
func defineLimits(flags *flag.FlagSet, l *plugin.Limits) {
	most, _ := plugin.Limits{}.Normalize() // no field is negative
	for _, f := range []struct {
		name, usage string
		value       *int
		otherwise   int
	}{
		{"max-sessions", "`number` of sessions of this plugin", &l.Sessions, most.Sessions},
		{"max-holds", "`number` of what one session holds or waits for", &l.Grants, most.Grants},
		{"max-watches", "`number` of streams of one session besides its own", &l.Watches, most.Watches},
		{"max-message", "`bytes` of one message from a host", &l.Message, most.Message},
	} {
		flags.Func(f.name, fmt.Sprintf("limit on the %s (default %d)", f.usage, f.otherwise), func(s string) error {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 {
				return fmt.Errorf("it must be a whole number from 1")
			}
			*f.value = n
			return nil
		})
	}
}

// serveDebug serves until it is interrupted, and prints the environment variable for the host
// as a shell command.
func serveDebug(stdout io.Writer, limits plugin.Limits) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return plugin.Debug(ctx, zookeeper.Open, func(name, value string) {
		fmt.Fprintf(stdout, "# Not encrypted, not authenticated: for debugging only. Start the host with\nexport %s='%s'\n", name, value)
	}, limits, resume)
}
