package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

const serveHelp = `Usage: zkbench serve [flags]

Runs a ZooKeeper server until it is interrupted, to try things on. When it
serves, the connect string goes to stdout.

Examples:

	zkbench serve
	zkbench serve -listen 127.0.0.1:2181
	zkbench serve -ensemble 3

Rules:

	The built-in server keeps everything in memory. With -ensemble, real servers
	run, and their files are removed at the end.

Exit codes:

	0    interrupted
	1    the server could not be started
	2    the flags cannot be used
	130  interrupted before it served

Flags:

`

// serveVerb is zkbench serve.
func (c command) serveVerb(ctx context.Context, args []string) (err error) {
	w := newWhere()
	f := flag.NewFlagSet("zkbench serve", flag.ContinueOnError)
	listen := f.String("listen", "", "`host:port` of the built-in server; by default a free port on loopback")
	f.IntVar(&w.ensemble, "ensemble", 0, "run this `number` (1 or 3) of real ZooKeeper servers instead")
	if err := c.parse(f, serveHelp, args); err != nil {
		return err
	}
	switch given := given(f); {
	case f.NArg() > 0:
		return usageError{fmt.Errorf("%q is not a flag", f.Arg(0))}
	case given["listen"] && given["ensemble"]:
		return usageError{fmt.Errorf("-listen is of the built-in server; -ensemble finds ports of its own")}
	case w.check(given) != nil:
		return usageError{w.check(given)}
	}
	end := &cleanup{}
	defer end.run(&err)
	addrs, err := serve(ctx, *listen, w, end)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(c.stdout, strings.Join(addrs, ",")); err != nil {
		return err
	}
	c.say("serving; interrupt to end")
	<-ctx.Done()
	return nil
}

func serve(ctx context.Context, listen string, w where, end *cleanup) ([]string, error) {
	if w.ensemble > 0 {
		srv, err := startEnsemble(ctx, w.ensemble, end)
		return srv.addrs, err
	}
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("start the built-in server: %w", err)
	}
	s := zkserver.New(zkserver.Config{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	end.add(func() error {
		err := s.Close()
		<-served // of no interest: it says that the server was closed
		return err
	})
	return []string{listener.Addr().String()}, nil
}
