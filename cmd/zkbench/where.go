package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// where has the flags for the servers, which several verbs share.
type where struct {
	servers  list[string]
	ensemble int
	embedded bool
	access   access
}

func newWhere() where { return where{servers: list[string]{nil, parseServer}} }

func (w *where) add(f *flag.FlagSet) {
	f.BoolVar(&w.embedded, "embedded", false, "measure a server inside zkbench (the default): it needs no other software and\nkeeps everything in memory, so its speed says nothing about real servers")
	f.IntVar(&w.ensemble, "ensemble", 0, "start this `number` (1 or 3) of real ZooKeeper servers on this machine for the run;\nneeds Java and ZooKeeper (ZOOKEEPER_HOME, or Debian's package zookeeper)")
	f.Var(&w.servers, "servers", "`list` of host:port of running servers")
	w.access.add(f)
}

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
		return errors.New("-embedded=false names no other server; give -ensemble or -servers")
	case given["ensemble"] && w.ensemble != 1 && w.ensemble != 3:
		return fmt.Errorf("-ensemble %d: it is 1 or 3", w.ensemble)
	}
	return w.access.check(given)
}

func (w *where) inside() bool { return w.ensemble == 0 && len(w.servers.values) == 0 }

// access has the flags for access to running servers. They have the names of the configuration
// of zkrecipes (package hostconfig). A secret is never an argument, because all users of the
// machine can read arguments.
type access struct {
	chroot, acl string

	user, passwordFile, passwordEnv string

	tls                                           bool
	caFile, certificateFile, keyFile, keyEnv, sni string
}

func (a *access) add(f *flag.FlagSet) {
	f.StringVar(&a.chroot, "chroot", "", "`path` in -servers below which all znodes are created")
	f.StringVar(&a.acl, "acl", "", "who may access the znodes that zkbench creates in -servers: world, creator (default world)")
	f.StringVar(&a.user, "auth-user", "", "user of the digest scheme, for -servers")
	f.StringVar(&a.passwordFile, "auth-password-file", "", "`file` with the user's password; a newline at its end is not part of it")
	f.StringVar(&a.passwordEnv, "auth-password-env", "", "environment `variable` with the password")
	f.BoolVar(&a.tls, "tls", false, "connect to -servers by TLS, and trust the system's certificates; the other -tls flags\nimply it")
	f.StringVar(&a.caFile, "tls-ca-file", "", "PEM `file` with the CA certificates of the servers")
	f.StringVar(&a.certificateFile, "tls-certificate-file", "", "PEM `file` with zkbench's own certificate")
	f.StringVar(&a.keyFile, "tls-key-file", "", "PEM `file` with the key of zkbench's certificate")
	f.StringVar(&a.keyEnv, "tls-key-env", "", "environment `variable` with the key of zkbench's certificate, PEM")
	f.StringVar(&a.sni, "tls-server-name", "", "`name` to expect in the servers' certificates; by default the host in -servers")
}

var accessFlags = []string{
	"chroot", "acl", "auth-user", "auth-password-file", "auth-password-env", "tls", "tls-ca-file",
	"tls-certificate-file", "tls-key-file", "tls-key-env", "tls-server-name",
}

// check returns an error if the flags contradict each other.
func (a *access) check(given map[string]bool) error {
	for _, name := range accessFlags {
		if given[name] && !given["servers"] {
			return fmt.Errorf("-%s is for running servers; it needs -servers", name)
		}
	}
	for _, mistake := range []mistake{
		{a.acl != "" && a.acl != "world" && a.acl != "creator", fmt.Sprintf("-acl %q: world or creator", a.acl)},
		{a.acl == "creator" && a.user == "", "-acl creator needs -auth-user: without a user there is no creator"},
		{a.user != "" && a.passwordFile == "" && a.passwordEnv == "", "-auth-user needs -auth-password-file or -auth-password-env"},
		{a.user == "" && (a.passwordFile != "" || a.passwordEnv != ""), "a password needs -auth-user"},
		{a.passwordFile != "" && a.passwordEnv != "", "-auth-password-file and -auth-password-env exclude each other; give one"},
		{a.keyFile != "" && a.keyEnv != "", "-tls-key-file and -tls-key-env exclude each other; give one"},
	} {
		if mistake.made {
			return errors.New(mistake.what)
		}
	}
	return nil
}

// config returns the configuration of sessions on the servers. An error is a usageError, and
// contains no secret.
func (a *access) config(servers []string) (recipes.SessionConfig, error) {
	cfg := recipes.SessionConfig{Servers: servers, Chroot: a.chroot}
	err := a.digest(&cfg)
	if err == nil {
		err = a.encryption(&cfg)
	}
	if err == nil {
		_, err = cfg.Normalize()
	}
	if err != nil {
		return recipes.SessionConfig{}, usageError{err}
	}
	return cfg, nil
}

func (a *access) digest(cfg *recipes.SessionConfig) error {
	if a.user == "" {
		return nil
	}
	password, err := secret("auth-password", a.passwordFile, a.passwordEnv)
	if err != nil {
		return err
	}
	cfg.Digest = &recipes.Digest{User: a.user, Password: strings.TrimSuffix(strings.TrimSuffix(string(password), "\n"), "\r")}
	if a.acl == "creator" {
		cfg.ACL = []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}
	}
	return nil
}

func (a *access) encrypted() bool {
	return a.tls || a.caFile+a.certificateFile+a.keyFile+a.keyEnv+a.sni != ""
}

func (a *access) encryption(cfg *recipes.SessionConfig) (err error) {
	if !a.encrypted() {
		return nil
	}
	t := &recipes.TLS{ServerName: a.sni}
	if t.CA, err = secret("tls-ca", a.caFile, ""); err != nil {
		return err
	}
	if t.Certificate, err = secret("tls-certificate", a.certificateFile, ""); err != nil {
		return err
	}
	if t.Key, err = secret("tls-key", a.keyFile, a.keyEnv); err != nil {
		return err
	}
	cfg.TLS = t
	return nil
}

// secret returns the content of a file or of an environment variable. flag is the beginning of
// the flags' names.
func secret(flag, file, variable string) ([]byte, error) {
	switch {
	case file != "":
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("-%s-file: %w", flag, err)
		}
		return content, nil
	case variable != "":
		value, ok := os.LookupEnv(variable)
		if !ok {
			return nil, fmt.Errorf("-%s-env: the environment variable %s is not set", flag, variable)
		}
		return []byte(value), nil
	}
	return nil, nil
}
