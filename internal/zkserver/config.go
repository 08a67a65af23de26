package zkserver

import (
	"fmt"
	"slices"
	"time"
)

// Config holds the settings of a server. The zero value gives ZooKeeper's
// defaults.
type Config struct {
	// TickTime is the unit of session timeouts. Default 2s.
	TickTime time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound the timeout that a client
	// requests. Default 2 and 20 ticks. Keeper's are 10s and 100s.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// MaxPacket is jute.maxbuffer in bytes: a larger request closes the
	// connection without an answer. Default 0xfffff.
	MaxPacket int
	// ReapInterval is the time between deletions of empty containers and expired
	// TTL znodes, as znode.container.checkIntervalMs. Default one minute.
	ReapInterval time.Duration
	// Like is the release as which the server behaves. Default [Newest].
	Like Release
	// DisableDigest refuses digest credentials, as ZooKeeper does with
	// zookeeper.DigestAuthenticationProvider.enabled=false.
	DisableDigest bool
}

func (c Config) withDefaults() Config {
	if c.TickTime <= 0 {
		c.TickTime = 2 * time.Second
	}
	if c.Like == 0 {
		c.Like = Newest
	}
	shortest, longest := 2*c.TickTime, 20*c.TickTime
	if c.Like.Keeper() {
		shortest, longest = 10*time.Second, 100*time.Second
	}
	if c.MinSessionTimeout <= 0 {
		c.MinSessionTimeout = shortest
	}
	if c.MaxSessionTimeout <= 0 {
		c.MaxSessionTimeout = longest
	}
	if c.MaxPacket <= 0 {
		c.MaxPacket = 0xfffff
	}
	if c.ReapInterval <= 0 {
		c.ReapInterval = time.Minute
	}
	return c
}

// Release is a release line of ZooKeeper, or a version of ClickHouse Keeper. The server
// behaves like it.
type Release int

// The answers of ZooKeeper's release lines are recorded from the named version, in Debian's
// build. Those of Keeper are played as its sources and issues describe them. They were not
// compared with a Keeper.
const (
	Release34 Release = iota + 1 // 3.4.13
	Release38                    // 3.8.0
	Release39                    // 3.9.6
	Keeper22                     // ClickHouse Keeper 22.8
	Keeper26                     // ClickHouse Keeper 26.8

	// Newest is the default.
	Newest = Release39
)

// Releases returns the release lines of ZooKeeper, the oldest first.
func Releases() []Release { return []Release{Release34, Release38, Release39} }

// Keepers returns the versions of ClickHouse Keeper, the oldest first.
func Keepers() []Release { return []Release{Keeper22, Keeper26} }

// Recorded returns the version from which the answers were recorded, or of a Keeper the
// version as which they are played.
func (r Release) Recorded() string { return r.profile().version }

// Keeper reports whether it is a version of ClickHouse Keeper.
func (r Release) Keeper() bool { return r.profile().keeper }

// String returns the major and the minor number, such as "3.9" or "keeper-26.8".
func (r Release) String() string { return r.profile().name }

// profile returns the zero profile for a number that is no release.
func (r Release) profile() *profile {
	if p := profiles[r]; p != nil {
		return p
	}
	return &profile{}
}

// MarshalText returns the same text as String.
func (r Release) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText accepts what String returns. An error names all releases.
func (r *Release) UnmarshalText(text []byte) error {
	all := slices.Concat(Releases(), Keepers())
	i := slices.IndexFunc(all, func(r Release) bool { return r.String() == string(text) })
	if i < 0 {
		return fmt.Errorf("no answers of ZooKeeper %q are recorded; give one of %v", text, all)
	}
	*r = all[i]
	return nil
}
