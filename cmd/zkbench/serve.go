package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/servers"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

const serveHelp = `Usage: zkbench serve [flags]

Runs a ZooKeeper server for trials until it is interrupted. When the server is ready, its
connect string is written to stdout.

Examples:

	zkbench serve
	zkbench serve -listen 127.0.0.1:2181
	zkbench serve -like 3.4
	zkbench serve -ensemble 3

Rules:

	The embedded server behaves as ZooKeeper 3.9.6 and keeps everything in memory.
	With -like 3.8 it behaves as 3.8.0, and with -like 3.4 as 3.4.13. With keeper-22.8
	or keeper-26.8 it plays what is published about ClickHouse Keeper.
	With -ensemble, real servers run, and their files are removed at the end.

Exit codes:

	0    interrupted
	1    the server could not be started, or a server has ended
	2    the flags cannot be used
	130  interrupted before it served`

func (c command) serveVerb(ctx context.Context, args []string) (err error) {
	w := servers.Flags{}
	f := flag.NewFlagSet("zkbench serve", flag.ContinueOnError)
	listen := f.String("listen", "", helptext.Common("`host:port` of the embedded server; by default a free port on loopback"))
	like := zkserver.Newest
	all := slices.Concat(zkserver.Releases(), zkserver.Keepers())
	f.TextVar(&like, "like", like, helptext.Common(fmt.Sprintf("`release` that the embedded server behaves as, one of %v", all)))
	f.IntVar(&w.Ensemble, "ensemble", 0, helptext.Common("run this `number` of real ZooKeeper servers instead, 1 or 3"))
	if err := c.parse(f, serveHelp, args); err != nil {
		return err
	}
	switch given := given(f); {
	case f.NArg() > 0:
		return exit.Usage(fmt.Errorf("%q is not a flag", f.Arg(0)))
	case given["listen"] && given["ensemble"]:
		return exit.Usage(fmt.Errorf("-listen is for the embedded server; -ensemble chooses ports itself"))
	case given["like"] && given["ensemble"]:
		return exit.Usage(fmt.Errorf("-like is for the embedded server; ZOOKEEPER_HOME chooses what -ensemble runs"))
	case w.Check(given) != nil:
		return exit.Usage(w.Check(given))
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	end := &exit.Cleanup{}
	defer end.Run(&err)
	var addrs []string
	var serve func() error // blocks until a server has ended
	if w.Ensemble > 0 {
		srv, err := servers.StartEnsemble(ctx, w.Ensemble, end)
		if err != nil {
			return err
		}
		addrs = srv.Addrs()
		serve = func() error { srv.Ensemble.AwaitEnd(ctx); return nil } // end returns the error
	} else {
		listener, err := net.Listen("tcp", cmp.Or(*listen, "127.0.0.1:0"))
		if err != nil {
			return fmt.Errorf("start the embedded server: %w; -listen takes another address, and port 0 a free port", err)
		}
		addrs = []string{listener.Addr().String()}
		s := zkserver.New(zkserver.Config{Like: like})
		serve = func() error { return s.Serve(listener) }
		end.Add(s.Close)
	}
	served := make(chan error, 1)
	serving.Go(func() { served <- serve() })
	if _, err := fmt.Fprintln(c.stdout, strings.Join(addrs, ",")); err != nil {
		return err
	}
	c.say("serving; interrupt to end")
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}
