package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"
)

// where is the flags that say which servers are meant, which several verbs have.
type where struct {
	servers  list[string]
	ensemble int
	embedded bool
	access   access
}

func newWhere() where { return where{servers: list[string]{nil, parseServer}} }

// add adds the flags to f.
func (w *where) add(f *flag.FlagSet) {
	f.BoolVar(&w.embedded, "embedded", false, "measure a server inside zkbench (the default): needs nothing, keeps all in memory,\nsays nothing about how fast a real server is")
	f.IntVar(&w.ensemble, "ensemble", 0, "start this `number` (1 or 3) of real ZooKeeper servers on this machine for the run;\nneeds Java and ZooKeeper (ZOOKEEPER_HOME, or Debian's package zookeeper)")
	f.Var(&w.servers, "servers", "`list` of host:port of servers that are running")
	w.access.add(f)
}

// check says what is wrong with the flags taken together.
func (w *where) check(given map[string]bool) error {
	var places []string
	for _, name := range []string{"embedded", "ensemble", "servers"} {
		if given[name] {
			places = append(places, "-"+name)
		}
	}
	switch {
	case len(places) > 1:
		return fmt.Errorf("%s exclude each other; give one", strings.Join(places, " and "))
	case given["embedded"] && !w.embedded:
		return errors.New("-embedded=false says where not to measure; give -ensemble or -servers")
	case given["ensemble"] && w.ensemble != 1 && w.ensemble != 3:
		return fmt.Errorf("-ensemble %d: it is 1 or 3", w.ensemble)
	}
	return w.access.check(given)
}

// inside reports whether the server is in this process.
func (w *where) inside() bool { return w.ensemble == 0 && len(w.servers.values) == 0 }
