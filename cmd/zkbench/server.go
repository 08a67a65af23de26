package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// server is the ZooKeeper to measure.
type server struct {
	words
	session recipes.SessionConfig // for its sessions
	about   record.Server
	facts   map[string]string // facts that the server itself does not report

	ensemble *ensemble.Ensemble // started for this run; nil for others
}

// figures reads the servers' own figures. mntr has no processor time. For servers that were
// started for this run, it is that of this process's children, where the system has it.
func (s server) figures(ctx context.Context) (map[string]float64, error) {
	figures, err := s.mntr(ctx)
	if s.ensemble != nil {
		if seconds, ok := childrenCPU(); ok {
			figures["process_cpu_seconds"] = seconds
		}
	}
	return figures, err
}

func startServer(ctx context.Context, w where, end *cleanup) (server, error) {
	switch {
	case w.ensemble > 0:
		return startEnsemble(ctx, w.ensemble, end)
	case len(w.servers) > 0:
		cfg, err := w.access.config(w.servers)
		if err != nil {
			return server{}, err
		}
		return findServers(ctx, cfg)
	}
	return startEmbedded(ctx, end)
}

func findServers(ctx context.Context, cfg recipes.SessionConfig) (server, error) {
	w, err := newWords(cfg)
	if err != nil {
		return server{}, err
	}
	about, err := w.describe(ctx)
	return server{words: w, session: cfg, about: about}, err
}

func startEmbedded(ctx context.Context, end *cleanup) (server, error) {
	s, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		return server{}, fmt.Errorf("start the embedded server: %w", err)
	}
	end.add(s.Close)
	srv, err := findServers(ctx, recipes.SessionConfig{Servers: []string{s.Addr()}})
	srv.about.Mode = "embedded"
	srv.facts = map[string]string{
		"forceSync": "no: it keeps everything in memory", "disk": "none", "fsync": "none", "caches": "none",
		"processors": "shared with zkbench", "memory": "shared with zkbench",
	}
	return srv, err
}

func startEnsemble(ctx context.Context, n int, end *cleanup) (server, error) {
	e, err := ensemble.Start(ctx, ensemble.Config{Servers: n, Properties: map[string]string{"maxClientCnxns": "0"}})
	if err != nil {
		return server{}, fmt.Errorf("start %s: %w", english.Count(n, "ZooKeeper server"), err)
	}
	end.add(func() (ended error) {
		if ctx.Err() == nil { // an interrupt of the terminal ends them too, except on Linux
			ended = e.Ended()
		}
		return errors.Join(ended, e.Stop())
	})
	srv, err := findServers(ctx, recipes.SessionConfig{Servers: e.Addrs()})
	srv.ensemble = e
	srv.facts = map[string]string{
		"forceSync": "yes (ZooKeeper's default)", "caches": "ZooKeeper's defaults",
		"jute.maxbuffer": "ZooKeeper's default",
		"processors":     "shared with zkbench", "memory": "shared with zkbench",
	}
	return srv, err
}

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
	With -like 3.8 it behaves as 3.8.0, and with -like 3.4 as 3.4.13.
	With -ensemble, real servers run, and their files are removed at the end.

Exit codes:

	0    interrupted
	1    the server could not be started, or a server has ended
	2    the flags cannot be used
	130  interrupted before it served`

func (c command) serveVerb(ctx context.Context, args []string) (err error) {
	w := where{}
	f := flag.NewFlagSet("zkbench serve", flag.ContinueOnError)
	listen := f.String("listen", "", helptext.Common("`host:port` of the embedded server; by default a free port on loopback"))
	like := zkserver.Newest
	f.TextVar(&like, "like", like, helptext.Common(fmt.Sprintf("`release` of ZooKeeper that the embedded server behaves as, one of %v", zkserver.Releases())))
	f.IntVar(&w.ensemble, "ensemble", 0, helptext.Common("run this `number` of real ZooKeeper servers instead, 1 or 3"))
	if err := c.parse(f, serveHelp, args); err != nil {
		return err
	}
	switch given := given(f); {
	case f.NArg() > 0:
		return usageError{fmt.Errorf("%q is not a flag", f.Arg(0))}
	case given["listen"] && given["ensemble"]:
		return usageError{fmt.Errorf("-listen is for the embedded server; -ensemble chooses ports itself")}
	case given["like"] && given["ensemble"]:
		return usageError{fmt.Errorf("-like is for the embedded server; ZOOKEEPER_HOME chooses what -ensemble runs")}
	case w.check(given) != nil:
		return usageError{w.check(given)}
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	end := &cleanup{}
	defer end.run(&err)
	var addrs []string
	var serve func() error // until a server has ended
	if w.ensemble > 0 {
		srv, err := startEnsemble(ctx, w.ensemble, end)
		if err != nil {
			return err
		}
		addrs = srv.addrs
		serve = func() error { srv.ensemble.AwaitEnd(ctx); return nil } // end returns the error
	} else {
		listener, err := net.Listen("tcp", cmp.Or(*listen, "127.0.0.1:0"))
		if err != nil {
			return fmt.Errorf("start the embedded server: %w", err)
		}
		addrs = []string{listener.Addr().String()}
		s := zkserver.New(zkserver.Config{Like: like})
		serve = func() error { return s.Serve(listener) }
		end.add(s.Close)
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
