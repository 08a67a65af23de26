package recipes

import (
	"fmt"
	"path/filepath"
	"strings"
)

// SASL authenticates a session by SASL, on each of its connections, before any other request. The
// user is then known to ACLs as the scheme "sasl". A session can have a Digest too.
//
// If the server refuses the credentials or does not offer the mechanism, the session ends with
// ErrAuthFailed, without another attempt. The same holds for a refusal by the Kerberos KDC, an expired
// ticket and a file that cannot be used. A KDC without an answer is asked again.
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
	// Service is the first part of the servers' principals, to which the host name in
	// Servers is added. "" is "zookeeper". If it contains a slash, it is the whole principal,
	// without a realm, of all servers. Servers are in the client's realm. Unlike in ZooKeeper's
	// Java client, the DNS does not change host names.
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
