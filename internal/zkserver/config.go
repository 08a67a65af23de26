package zkserver

import "time"

// Config holds the settings of a server. The zero value gives ZooKeeper's
// defaults.
type Config struct {
	// TickTime is the unit of session timeouts. Default 2s.
	TickTime time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound what a client may ask for.
	// Default 2 and 20 ticks.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// MaxPacket is jute.maxbuffer in bytes: a larger request closes the
	// connection without an answer. Default 0xfffff.
	MaxPacket int
	// Version is what srvr and mntr report. Default "3.8.0-zkrecipes-embedded".
	Version string
	// ReapInterval is the time between deletions of empty containers and expired
	// TTL nodes, as znode.container.checkIntervalMs. Default one minute.
	ReapInterval time.Duration
	// DisableTTL answers createTTL with Unimplemented, as ZooKeeper does
	// unless it was started with zookeeper.extendedTypesEnabled.
	DisableTTL bool
	// Before35 answers what ZooKeeper 3.5 has added as 3.4 does, by its sources. A
	// request is answered with Unimplemented, and the connection is closed. The flags of
	// containers and TTL nodes are answered with BadArguments, also in a multi.
	Before35 bool
	// DisableDigest refuses digest credentials, as ZooKeeper does with
	// zookeeper.DigestAuthenticationProvider.enabled=false.
	DisableDigest bool
}

func (c Config) withDefaults() Config {
	if c.TickTime <= 0 {
		c.TickTime = 2 * time.Second
	}
	if c.MinSessionTimeout <= 0 {
		c.MinSessionTimeout = 2 * c.TickTime
	}
	if c.MaxSessionTimeout <= 0 {
		c.MaxSessionTimeout = 20 * c.TickTime
	}
	if c.MaxPacket <= 0 {
		c.MaxPacket = 0xfffff
	}
	if c.Version == "" {
		c.Version = "3.8.0-zkrecipes-embedded"
	}
	if c.ReapInterval <= 0 {
		c.ReapInterval = time.Minute
	}
	return c
}
