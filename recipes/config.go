package recipes

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Defaults of [SessionConfig], which Normalize fills in.
const (
	defaultSessionTimeout = 10 * time.Second
	defaultConnectTimeout = 2 * time.Second
	defaultMaxPacket      = 0xfffff
	defaultMaxListing     = 64 << 20
	defaultPort           = "2181"
)

// SessionConfig configures a session. Only Servers is required.
type SessionConfig struct {
	// Servers are host:port addresses of the ensemble. The default port is 2181. The client
	// tries them in random order. [ParseConnectString] splits a ZooKeeper connect string.
	Servers []string

	// Chroot is the path to which all paths of the session are relative. It is created with
	// the first znode below it. "" and "/" mean no chroot.
	Chroot string

	// SessionTimeout is the requested session timeout. The server bounds it, by default to
	// 2 to 20 of its ticks. With a long timeout, a dead holder blocks others for long. With a
	// short one, a slow network or a long pause loses the session. 0 is ten seconds.
	SessionTimeout time.Duration

	// ConnectTimeout bounds one attempt to connect to one server: dialling, the TLS handshake
	// and ZooKeeper's handshake. 0 is two seconds. A DNS look-up has its own limit, of 20
	// seconds; until it ends, the addresses found last are used. A session with several servers
	// that has lost its connection takes less time for its first attempts, so that a few servers
	// that do not answer cannot use up SessionTimeout.
	ConnectTimeout time.Duration

	// Digest, if not nil, authenticates the session with the digest scheme.
	Digest *Digest

	// SASL, if not nil, authenticates the session by SASL: by Kerberos, or by DIGEST-MD5.
	SASL *SASL

	// ACL is the ACL of every znode that the session creates, parents included. Empty is
	// world:anyone with all permissions, as in other libraries: every client that reaches
	// the servers can break locks.
	//
	// Contenders that wait by Handoff, and their path if they create it, get this ACL
	// without the permissions to write and to change the ACL. Only sessions with the same
	// Digest get those; without a Digest, the sessions without one. If the ACL does not
	// allow world:anyone to delete, the session needs a secret for that: a Digest, a password
	// in SASL together with TLS, or a key in TLS. Without one it waits by Predecessor.
	//
	// Contenders of one path must be able to read each other's znodes and their own. A
	// server does not notify a session of the deletion of a znode that it may not read. So
	// such a contender is refused with ErrAccessDenied.
	ACL []ACL

	// TLS, if not nil, encrypts the connections.
	TLS *TLS

	// MaxPacket bounds, in bytes, what the client sends in one packet, and the data that it
	// accepts. It should be the servers' jute.maxbuffer. A session's memory depends on what is
	// sent and received, not on MaxPacket. The paths of all that a session holds must fit into 15/16
	// of it, with 4 bytes more for each: ZooKeeper writes them into one transaction when the session
	// ends. 0 is 0xfffff bytes, ZooKeeper's default of
	// jute.maxbuffer.
	MaxPacket int

	// MaxListing bounds, in bytes, the listing of a path that the client accepts. A longer one
	// is ErrTooLarge. Servers do not bound listings. A listing has 20 bytes for each element of a
	// queue, about 60 for each contender, and 4 more than its name for each key or name. So the
	// default is room for 3 million elements or a million contenders. A listing of a million elements
	// (20 MB) takes 60 MB of memory, and 250 MB in the consumer of a queue, which sorts it and keeps
	// 70 MB until it is exhausted (measured with Go's default GOGC). Other replies of the session wait
	// while it arrives: on a slow network, long listings need a long SessionTimeout. 0 is 64 MiB.
	MaxListing int

	// FollowServers replaces Servers by the members of the ensemble, which servers since ZooKeeper
	// 3.5 have in /zookeeper/config, at each connection and each reconfiguration. So a session
	// outlives all servers with which it was opened. Clients must reach the servers by the
	// addresses there. If the client port of a server is not there, the port of Servers is used,
	// provided that all of them have the same; with TLS all servers must have that port.
	FollowServers bool

	// ZooKeeperOnly makes Open fail with ErrUnsupported if the servers are ClickHouse Keeper, where
	// less is known about what a lock promises: see docs/servers.md. By default the session
	// is opened, logs a warning, and names the servers in Stats.Server.
	ZooKeeperOnly bool

	// ReadsPerSecond bounds the reads and listings that the session sends in a second, and spreads
	// them evenly. 0 means no bound: then the reads of one call, such as Contenders, are sent in
	// groups of 128, each when the last one was answered. With a bound, a group has at most the
	// reads of 10 ms. It is for tools that read much and must not load the servers. It does not
	// delay a read that sets a watch, a write or a ping. But other reads of a contender wait too:
	// hold nothing in such a session.
	ReadsPerSecond int

	// Logger receives the session's log; nil discards it. It is not sent to a plugin, whose
	// log goes to its host's logger.
	//
	// It is an hclog.Logger, so that one logger serves host, plugin and session: go-plugin
	// supports nothing else, and host and plugin already depend on it. An application with
	// log/slog wraps its handler in an hclog.Logger.
	Logger hclog.Logger
}

// Digest is a user and password of the digest scheme. The password is never
// logged.
type Digest struct {
	User, Password string
}

// String hides the password.
func (d Digest) String() string { return d.User + ":***" }

// GoString hides the password.
func (d Digest) GoString() string { return "recipes.Digest{" + d.String() + "}" }

// Permission is a set of rights of an ACL entry.
type Permission int32

// ZooKeeper's permissions. Deleting a znode needs PermDelete on its parent.
const (
	PermRead Permission = 1 << iota
	PermWrite
	PermCreate
	PermDelete
	PermAdmin
	PermAll Permission = 0x1f
)

// ACL is one entry of an access control list.
type ACL struct {
	Permissions Permission
	Scheme, ID  string // "world", "anyone"; "auth", ""; "digest", "user:hash"; "ip", "127.0.0.1"
}

// Normalize checks the configuration and returns it with defaults filled in.
// Addresses have ports, and a chroot has no trailing slash ("" for none). The error
// matches ErrInvalid and names the field.
func (c SessionConfig) Normalize() (SessionConfig, error) {
	invalid := func(format string, args ...any) (SessionConfig, error) {
		return SessionConfig{}, fmt.Errorf("%w: config: "+format, append([]any{ErrInvalid}, args...)...)
	}
	if len(c.Servers) == 0 {
		return invalid("Servers is empty; give at least one host:port")
	}
	servers := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		address, err := address(s)
		if err != nil {
			return invalid("Servers[%d]: %v", i, err)
		}
		servers[i] = address
	}
	c.Servers = servers
	if c.Chroot == "/" {
		c.Chroot = ""
	}
	if c.Chroot != "" {
		if err := ValidatePath(c.Chroot); err != nil {
			return invalid("Chroot: %v", err)
		}
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"SessionTimeout", &c.SessionTimeout, defaultSessionTimeout},
		{"ConnectTimeout", &c.ConnectTimeout, defaultConnectTimeout},
	} {
		switch {
		case *d.value < 0:
			return invalid("%s is %v; it must be positive", d.name, *d.value)
		case *d.value == 0:
			*d.value = d.zero
		case *d.value < time.Millisecond:
			return invalid("%s is %v; ZooKeeper counts in milliseconds", d.name, *d.value)
		}
	}
	if c.SessionTimeout > 1<<31*time.Millisecond-1 {
		return invalid("SessionTimeout is %v; ZooKeeper allows at most 2^31 milliseconds", c.SessionTimeout)
	}
	switch {
	case c.MaxPacket == 0:
		c.MaxPacket = defaultMaxPacket
	case c.MaxPacket < minPacket || c.MaxPacket > maxPacket:
		return invalid("MaxPacket is %d bytes; between %d and %d", c.MaxPacket, minPacket, maxPacket)
	}
	switch {
	case c.MaxListing == 0:
		c.MaxListing = defaultMaxListing
	case c.MaxListing < minPacket || c.MaxListing > maxPacket:
		return invalid("MaxListing is %d bytes; between %d and %d", c.MaxListing, minPacket, maxPacket)
	}
	if c.ReadsPerSecond < 0 || c.ReadsPerSecond > maxReads {
		return invalid("ReadsPerSecond is %d; between 0 and %d", c.ReadsPerSecond, maxReads)
	}
	if c.Digest != nil && (c.Digest.User == "" || strings.Contains(c.Digest.User, ":")) {
		return invalid("Digest.User is empty or contains a colon")
	}
	if c.SASL != nil {
		if wrong := c.SASL.check(); wrong != "" {
			return invalid("SASL.%s", wrong)
		}
	}
	for i, a := range c.ACL {
		if a.Scheme == "" || a.Permissions <= 0 || a.Permissions&^PermAll != 0 {
			return invalid("ACL[%d] needs a scheme and permissions between 1 and %d", i, PermAll)
		}
	}
	if c.TLS != nil && c.FollowServers {
		for _, s := range servers {
			if _, port, _ := net.SplitHostPort(s); !strings.HasSuffix(servers[0], ":"+port) {
				return invalid("FollowServers with TLS needs servers with one port: /zookeeper/config does not have the secure ports; Servers are %s", strings.Join(servers, ", "))
			}
		}
	}
	if c.TLS != nil {
		if _, err := c.TLS.ClientConfig(); err != nil {
			return SessionConfig{}, fmt.Errorf("config: %w", err)
		}
		c.TLS = c.TLS.loaded()
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c, nil
}

const (
	minPacket = 4 << 10
	maxPacket = 1 << 30
	maxReads  = 1_000_000
)

// SASL authenticates a session by SASL, on each of its connections, before any other request. The
// user is then known to ACLs as the scheme "sasl". A session can have a Digest too.
//
// If the server refuses the credentials or does not offer the mechanism, the session ends with
// ErrAuthFailed, without another attempt. The same applies to a refusal by the Kerberos KDC, an
// expired ticket and a file that cannot be used. If a KDC does not answer, the request is retried.
type SASL struct {
	// Mechanism is "GSSAPI", which is Kerberos, or "DIGEST-MD5". It is that of the servers:
	// ZooKeeper does not negotiate it.
	Mechanism string
	// User is the user of DIGEST-MD5, or the principal in Keytab, such as "app/host@REALM".
	User string
	// Password is for DIGEST-MD5. It is never logged.
	Password string
	// Keytab or CCache is for GSSAPI. Keytab is the absolute path of a keytab with a key of
	// User. CCache is that of a credential cache (a file) with a ticket, which the application
	// renews, for example by kinit. The plugin, or the process without one, reads the file when
	// a connection needs a ticket for its server. A session uses that ticket until a minute
	// before its end.
	Keytab, CCache string
	// Krb5Conf is the absolute path of Kerberos's configuration. "" is /etc/krb5.conf. Its
	// include and includedir lines are ignored.
	Krb5Conf string
	// Service is the first part of the servers' principals, to which the host name in Servers
	// is added. "" is "zookeeper". If it contains a slash, it is the whole principal, without a
	// realm, of all servers. Servers are in the client's realm. Unlike in ZooKeeper's Java
	// client, DNS does not change host names.
	Service string
}

// String hides the password.
func (s SASL) String() string { return fmt.Sprintf("sasl(%s, user %q)", s.Mechanism, s.User) }

// GoString hides the password.
func (s SASL) GoString() string { return "recipes.SASL{" + s.String() + "}" }

// check returns what is wrong with the configuration, or "".
func (s SASL) check() string {
	kerberos := s.Mechanism == "GSSAPI"
	switch {
	case !kerberos && s.Mechanism != "DIGEST-MD5":
		return fmt.Sprintf(`Mechanism is %q; ZooKeeper has "GSSAPI" and "DIGEST-MD5"`, s.Mechanism)
	case !kerberos && (s.User == "" || s.Password == ""):
		return "User or Password is empty; DIGEST-MD5 needs both"
	case !kerberos && s.Keytab+s.CCache+s.Krb5Conf+s.Service != "":
		return "Keytab, CCache, Krb5Conf and Service are for GSSAPI"
	case kerberos && s.Password != "":
		return "Password is for DIGEST-MD5; GSSAPI needs Keytab or CCache"
	case kerberos && (s.Keytab == "") == (s.CCache == ""):
		return "GSSAPI needs either Keytab or CCache"
	case kerberos && (s.Keytab == "") != (s.User == ""):
		return "User is needed with Keytab, and must be empty with CCache, which names it"
	case strings.HasPrefix(s.Service, "/"), strings.HasSuffix(s.Service, "/"), strings.Contains(s.Service, "@"):
		return fmt.Sprintf("Service is %q; give a name, or name/host without a realm", s.Service)
	}
	for _, file := range []struct{ field, path string }{{"Keytab", s.Keytab}, {"CCache", s.CCache}, {"Krb5Conf", s.Krb5Conf}} {
		if file.path != "" && !filepath.IsAbs(file.path) {
			return fmt.Sprintf("%s is %q; it must be the absolute path of a file", file.field, file.path)
		}
	}
	return ""
}
