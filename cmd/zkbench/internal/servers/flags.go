package servers

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/list"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/secret"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Flags are the flags for the servers, which several verbs share.
type Flags struct {
	Servers  []string // running servers; none for those that zkbench starts
	Ensemble int      // how many real servers to start; 0 for an embedded one
	embedded bool
	access   access
}

// Add adds the flags.
func (w *Flags) Add(f *flag.FlagSet) {
	f.BoolVar(&w.embedded, "embedded", false, "measure a server inside zkbench (the default): it needs no other software and\nkeeps everything in memory, so its speed says nothing about real servers")
	f.IntVar(&w.Ensemble, "ensemble", 0, helptext.Common("start this `number` of real ZooKeeper servers on this machine, 1 or 3, for the run;\nneeds Java and ZooKeeper (ZOOKEEPER_HOME, or Debian's package zookeeper)"))
	f.Var(connectString{w}, "servers", helptext.Common("`list` of host:port of running servers, with the chroot after the last one, if any"))
	f.BoolVar(&w.access.tls, "tls", false, "connect to -servers by TLS, and trust the system's certificates; the other -tls flags\nimply it")
	w.access.values = map[string]*string{}
	for _, a := range accessFlags {
		w.access.values[a.name] = f.String(a.name, "", a.usage)
	}
}

// Check returns an error if the given flags contradict each other.
func (w *Flags) Check(given map[string]bool) error {
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
		return errors.New("-embedded=false names no other server; give -ensemble or -servers")
	case given["ensemble"] && w.Ensemble != 1 && w.Ensemble != 3:
		return fmt.Errorf("-ensemble %d: it is 1 or 3", w.Ensemble)
	}
	return w.access.check(given)
}

type connectString struct{ *Flags }

// String is called by package flag on zero values too.
func (c connectString) String() string {
	if c.Flags == nil {
		return ""
	}
	return strings.Join(c.Servers, ",") + c.access.chroot
}

func (c connectString) Set(s string) error {
	servers, chroot, err := recipes.ParseConnectString(s)
	if err != nil {
		return err
	}
	c.access.chroot = chroot
	return list.Flag(&c.Servers, parseServer).Set(strings.Join(servers, ","))
}

// Inside reports whether the server is embedded.
func (w *Flags) Inside() bool { return w.Ensemble == 0 && len(w.Servers) == 0 }

// access has the flags for access to running servers. They have the names of the configuration
// of zkrecipes (package hostconfig). A secret is never an argument, because all users of the
// machine can read arguments.
type access struct {
	tls    bool
	chroot string             // of -servers
	values map[string]*string // by accessFlags
}

var accessFlags = []struct{ name, usage string }{
	{"chroot", "`path` in -servers below which all znodes are created"},
	{"acl", "who may access the znodes that zkbench creates in -servers: world, creator (default world)"},
	{"auth-user", "user of the digest scheme, for -servers"},
	{"auth-password-file", "`file` with the user's password; a newline at its end is not part of it"},
	{"auth-password-env", "environment `variable` with the password"},
	{"tls-ca-file", "PEM `file` with the CA certificates of the servers"},
	{"tls-certificate-file", "PEM `file` with zkbench's own certificate"},
	{"tls-key-file", "PEM `file` with the key of zkbench's certificate"},
	{"tls-key-env", "environment `variable` with the key of zkbench's certificate, PEM"},
	{"tls-server-name", "`name` to expect in the servers' certificates; by default the host in -servers"},
}

func (a access) get(name string) string {
	if value := a.values[name]; value != nil {
		return *value
	}
	return ""
}

// check returns an error if the flags contradict each other.
func (a access) check(given map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if (name == "tls" || a.values[name] != nil) && !given["servers"] {
			return fmt.Errorf("-%s is for running servers; it needs -servers", name)
		}
	}
	if chroot := a.get("chroot"); chroot != "" && a.chroot != "" && chroot != a.chroot {
		return fmt.Errorf("-servers has the chroot %s, and -chroot is %s; give one of them", a.chroot, chroot)
	}
	acl, user, password := a.get("acl"), a.get("auth-user"), a.get("auth-password-file")+a.get("auth-password-env")
	switch {
	case acl != "" && acl != "world" && acl != "creator":
		return fmt.Errorf("-acl %q: world or creator", acl)
	case acl == "creator" && user == "":
		return errors.New("-acl creator needs -auth-user: without a user there is no creator")
	case user != "" && password == "":
		return errors.New("-auth-user needs -auth-password-file or -auth-password-env")
	case user == "" && password != "":
		return errors.New("a password needs -auth-user")
	}
	for _, of := range []string{"auth-password", "tls-key"} {
		if a.get(of+"-file") != "" && a.get(of+"-env") != "" {
			return fmt.Errorf("-%s-file and -%[1]s-env exclude each other; give one", of)
		}
	}
	return nil
}

// TLSNeedsName reports whether a session that does not know its server's name, as behind a
// relay, cannot verify the certificate.
func (w *Flags) TLSNeedsName() bool {
	return w.access.encrypted() && w.access.get("tls-server-name") == "" && Hosts(w.Servers) > 1
}

func (a access) encrypted() bool {
	return a.tls || a.get("tls-ca-file")+a.get("tls-certificate-file")+a.get("tls-key-file")+a.get("tls-key-env")+a.get("tls-server-name") != ""
}

// config returns the configuration of sessions on the servers. An error comes from exit.Usage, and
// contains no secret.
func (a access) config(servers []string) (recipes.SessionConfig, error) {
	cfg := recipes.SessionConfig{Servers: servers, Chroot: cmp.Or(a.get("chroot"), a.chroot)}
	password, err := a.content("auth-password")
	if user := a.get("auth-user"); user != "" {
		cfg.Digest = &recipes.Digest{User: user, Password: secret.Password(password)}
	}
	if a.get("acl") == "creator" {
		cfg.ACL = []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}
	}
	if a.encrypted() {
		ca, err1 := a.content("tls-ca")
		certificate, err2 := a.content("tls-certificate")
		key, err3 := a.content("tls-key")
		cfg.TLS = &recipes.TLS{ServerName: a.get("tls-server-name"), CA: ca, Certificate: certificate, Key: key}
		err = errors.Join(err, err1, err2, err3)
	}
	if err == nil {
		_, err = cfg.Normalize()
	}
	if err != nil {
		return recipes.SessionConfig{}, exit.Usage(err)
	}
	return cfg, nil
}

// content returns the content of the file of -OF-file or of the environment variable of -OF-env.
func (a access) content(of string) (content []byte, err error) {
	source, name := of+"-file", a.get(of+"-file")
	switch variable := a.get(of + "-env"); {
	case name != "":
		read := secret.File
		if of == "auth-password" {
			read = secret.PrivateFile
		}
		content, err = read(name)
	case variable != "":
		source = of + "-env"
		content, err = secret.Variable(variable)
	}
	if err != nil {
		return nil, fmt.Errorf("-%s: %w", source, err)
	}
	return content, nil
}

func parseServer(s string) (string, error) {
	cfg, err := recipes.SessionConfig{Servers: []string{s}}.Normalize()
	if err != nil {
		return "", err
	}
	return cfg.Servers[0], nil
}

// Hosts returns the number of different hosts of servers.
func Hosts(servers []string) int {
	names := map[string]bool{}
	for _, server := range servers {
		host, _, _ := net.SplitHostPort(server)
		names[host] = true
	}
	return len(names)
}
