package ensemble

import (
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Config says which servers to start. The zero Config is one server with
// ZooKeeper's own defaults.
type Config struct {
	// Servers is the number of servers: an odd number, 0 for one. One is a
	// standalone server, more are an ensemble with an elected leader.
	Servers int

	// Observers is the number of servers that follow the ensemble and do not vote. They come
	// after the others. They need an ensemble: at least three Servers.
	Observers int

	// TickTime is ZooKeeper's unit of time, 0 for its default of 2 s. By default, session
	// timeouts are between 2 and 20 ticks, and a peer that is silent for 5 ticks is
	// dropped. Sessions expire at the end of a tick. 200 ms is long enough.
	TickTime time.Duration

	// MaxSessionTimeout is the longest session timeout that clients can negotiate, 0 for
	// ZooKeeper's 20 ticks.
	MaxSessionTimeout time.Duration

	// HeapMiB bounds the Java heap of each server, 0 for 256.
	HeapMiB int

	// NoSync makes a server answer before its transaction log is on disk, and
	// preallocate little of that log. Such a server starts and writes faster
	// than one that keeps its data: for tests, never for measurements.
	NoSync bool

	// FastStart makes the JVM compile less and collect garbage serially. A server
	// starts sooner and serves slower: for tests, never for measurements.
	FastStart bool

	// Dir is the parent of the directory that Start creates for the servers' files, "" for
	// the system's temporary directory. Stop removes that directory, and not Dir. The
	// disk of Dir decides how long an fsync takes.
	Dir string

	// Properties are lines for zoo.cfg, such as "syncLimit": "10". They override
	// the other fields.
	Properties map[string]string

	// ServerProperties, if not nil, returns the lines for zoo.cfg of one server. They override
	// Properties. The first id is 1.
	ServerProperties func(id int) map[string]string

	// SystemProperties are passed to Java as -Dkey=value. Some settings exist
	// only here, such as "znode.container.checkIntervalMs".
	SystemProperties map[string]string

	// Hosts, if not nil, has a network for each server and observer. Otherwise all servers run on
	// loopback.
	Hosts []Host

	// TLS, when set, opens a second, secure client port on every server.
	TLS *TLSConfig

	// Installation is the ZooKeeper to run. For the zero value, Start calls Find.
	Installation Installation

	// Logger gets starts, kills and freezes at debug level; nil for none.
	Logger hclog.Logger
}

// Host is the network of one server, such as a network namespace.
type Host struct {
	// IP is the address at which the server listens, for clients and for its peers.
	IP string

	// Do runs f on an operating system thread in that network. A process that f starts
	// and a connection that f makes belong to that network.
	Do func(f func() error) error
}

// loopback is the network of this process.
var loopback = Host{IP: loopbackIP, Do: func(f func() error) error { return f() }}

// host returns the network of the server with that id. The first id is 1.
func (c Config) host(id int) Host {
	if c.Hosts == nil {
		return loopback
	}
	return c.Hosts[id-1]
}

// all returns the number of servers and observers.
func (c Config) all() int { return c.Servers + c.Observers }

// observes reports whether the server with that id is an observer.
func (c Config) observes(id int) bool { return id > c.Servers }

const (
	defaultTickTime = 2 * time.Second
	defaultHeapMiB  = 256
)

// withDefaults returns the configuration with defaults filled in.
func (c Config) withDefaults() (Config, error) {
	if c.Servers == 0 {
		c.Servers = 1
	}
	if c.TickTime == 0 {
		c.TickTime = defaultTickTime
	}
	if c.HeapMiB == 0 {
		c.HeapMiB = defaultHeapMiB
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if err := c.check(); err != nil {
		return c, err
	}
	if c.Installation.isZero() {
		found, err := Find()
		if err != nil {
			return c, err
		}
		c.Installation = found
	}
	return c, nil
}

func (c Config) check() error {
	switch {
	case c.Servers < 1 || c.Servers%2 == 0:
		return fmt.Errorf("ensemble: %d servers; an ensemble has an odd number of servers", c.Servers)
	case c.Observers < 0 || c.Observers > 0 && c.Servers == 1:
		return fmt.Errorf("ensemble: %d observers of %d servers; observers need at least three servers", c.Observers, c.Servers)
	case c.Hosts != nil && len(c.Hosts) != c.all():
		return fmt.Errorf("ensemble: %d hosts for %d servers", len(c.Hosts), c.all())
	case c.TickTime < time.Millisecond:
		return fmt.Errorf("ensemble: tick time %v is below ZooKeeper's unit, a millisecond", c.TickTime)
	case c.HeapMiB < 0:
		return fmt.Errorf("ensemble: a heap of %d MiB is too small", c.HeapMiB)
	}
	return nil
}
