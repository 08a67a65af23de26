package zkserver

import "time"

// Config holds the settings of a server. The zero value gives ZooKeeper's
// defaults.
type Config struct {
	// TickTime is the unit of session timeouts. Default 2s.
	TickTime time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound the timeout that a client
	// requests. Default 2 and 20 ticks.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// MaxPacket is jute.maxbuffer in bytes: a larger request closes the
	// connection without an answer. Default 0xfffff.
	MaxPacket int
	// Version is the version that srvr and mntr report. It changes no other answer.
	// Default "3.8.0-zkrecipes-embedded".
	Version string
	// ReapInterval is the time between deletions of empty containers and expired
	// TTL znodes, as znode.container.checkIntervalMs. Default one minute.
	ReapInterval time.Duration
	// Before35 makes the server answer requests that are new in ZooKeeper 3.5 as the
	// sources of 3.4 do. A new request type is answered with Unimplemented, and the
	// connection is closed. The flags of containers and TTL znodes are answered with
	// BadArguments, also in a multi.
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
