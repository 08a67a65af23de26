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
	// ReapInterval is the time between deletions of empty containers and expired
	// TTL znodes, as znode.container.checkIntervalMs. Default one minute.
	ReapInterval time.Duration
	// Like is the release line whose answers the server gives. Default [Newest].
	Like Release
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
	if c.Like == 0 {
		c.Like = Newest
	}
	if c.ReapInterval <= 0 {
		c.ReapInterval = time.Minute
	}
	return c
}
