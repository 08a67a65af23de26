package zkserver

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

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

// Release is a release line of ZooKeeper. The server gives its answers.
type Release int

// The release lines. The answers of each are recorded from the named version, in Debian's
// build.
const (
	Release34 Release = iota + 1 // 3.4.13
	Release38                    // 3.8.0
	Release39                    // 3.9.6

	// Newest is the default.
	Newest = Release39
)

var recorded = map[Release]string{Release34: "3.4.13", Release38: "3.8.0", Release39: "3.9.6"}

// Releases returns all release lines, the oldest first.
func Releases() []Release { return []Release{Release34, Release38, Release39} }

// Recorded returns the version from which the answers were recorded.
func (r Release) Recorded() string { return recorded[r] }

// String returns the major and the minor number, such as "3.9".
func (r Release) String() string {
	version := r.Recorded()
	return version[:max(strings.LastIndexByte(version, '.'), 0)]
}

// version is the version that srvr and mntr report.
func (r Release) version() string { return r.Recorded() + "-zkrecipes-embedded" }

// MarshalText returns the same text as String.
func (r Release) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText accepts what String returns. An error names all release lines.
func (r *Release) UnmarshalText(text []byte) error {
	all := Releases()
	i := slices.IndexFunc(all, func(r Release) bool { return r.String() == string(text) })
	if i < 0 {
		return fmt.Errorf("no answers of ZooKeeper %q are recorded; give one of %v", text, all)
	}
	*r = all[i]
	return nil
}
