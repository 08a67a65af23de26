// Command zkrecipes-plugin is the zkrecipes plugin: it serves the ZooKeeper recipes over gRPC
// to the host application that launches it (see package host). When a person starts it, it
// prints its usage.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
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
