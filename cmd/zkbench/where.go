package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// where is the flags that say which servers are meant, which several verbs have.
type where struct {
	servers  list[string]
	ensemble int
	embedded bool
	access   access
}

func newWhere() where { return where{servers: list[string]{nil, parseServer}} }

func (w *where) add(f *flag.FlagSet) {
	f.BoolVar(&w.embedded, "embedded", false, "measure a server inside zkbench (the default): needs nothing, keeps all in memory,\nsays nothing about how fast a real server is")
	f.IntVar(&w.ensemble, "ensemble", 0, "start this `number` (1 or 3) of real ZooKeeper servers on this machine for the run;\nneeds Java and ZooKeeper (ZOOKEEPER_HOME, or Debian's package zookeeper)")
	f.Var(&w.servers, "servers", "`list` of host:port of servers that are running")
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
		return errors.New("-embedded=false says where not to measure; give -ensemble or -servers")
	case given["ensemble"] && w.ensemble != 1 && w.ensemble != 3:
		return fmt.Errorf("-ensemble %d: it is 1 or 3", w.ensemble)
	}
	return w.access.check(given)
}

func (w *where) inside() bool { return w.ensemble == 0 && len(w.servers.values) == 0 }

// access is the flags that say how to get into servers that run already. They are
// named after the configuration of zkrecipes (package hostconfig). A secret is
// never an argument, which everybody on the machine can read.
type access struct {
	chroot, acl string

	user, passwordFile, passwordEnv string

	tls                                           bool
	caFile, certificateFile, keyFile, keyEnv, sni string
}

func (a *access) add(f *flag.FlagSet) {
	f.StringVar(&a.chroot, "chroot", "", "`path` in -servers below which everything happens")
	f.StringVar(&a.acl, "acl", "", "who may use what zkbench creates in -servers: world, creator (default world)")
	f.StringVar(&a.user, "auth-user", "", "user of the digest scheme, for -servers")
	f.StringVar(&a.passwordFile, "auth-password-file", "", "`file` with the user's password; a newline at its end is not part of it")
	f.StringVar(&a.passwordEnv, "auth-password-env", "", "environment `variable` with the password")
	f.BoolVar(&a.tls, "tls", false, "speak TLS to -servers, and trust the system's certificates; implied by the others")
	f.StringVar(&a.caFile, "tls-ca-file", "", "PEM `file` with the certificates that may sign the servers'")
	f.StringVar(&a.certificateFile, "tls-certificate-file", "", "PEM `file` with zkbench's own certificate")
	f.StringVar(&a.keyFile, "tls-key-file", "", "PEM `file` with its key")
	f.StringVar(&a.keyEnv, "tls-key-env", "", "environment `variable` with its key, PEM")
	f.StringVar(&a.sni, "tls-server-name", "", "`name` to expect in the servers' certificates; by default the host that is dialled")
}

var accessFlags = []string{
	"chroot", "acl", "auth-user", "auth-password-file", "auth-password-env", "tls", "tls-ca-file",
	"tls-certificate-file", "tls-key-file", "tls-key-env", "tls-server-name",
}

// check says what is wrong with the flags taken together.
func (a *access) check(given map[string]bool) error {
	for _, name := range accessFlags {
		if given[name] && !given["servers"] {
			return fmt.Errorf("-%s is about servers that run already; it needs -servers", name)
		}
	}
	for _, mistake := range []mistake{
		{a.acl != "" && a.acl != "world" && a.acl != "creator", fmt.Sprintf("-acl %q: world or creator", a.acl)},
		{a.acl == "creator" && a.user == "", "-acl creator needs -auth-user: without one nobody is the creator"},
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

// config returns the configuration of sessions on the servers. An error is a
// usageError, and quotes no secret.
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

// secret reads what a file has, or a variable. flag is the beginning of the flags'
// names.
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
