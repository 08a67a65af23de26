package hostconfig

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func (r *reader) auth(b *authBlock) {
	digest := &recipes.Digest{}
	if b.User == nil {
		r.wrong(b.Range, "Missing user", "Expected user in the auth block.")
	}
	if decode(r, b.User, "a name", &digest.User) && (digest.User == "" || strings.Contains(digest.User, ":")) {
		r.wrong(b.User.Expr.Range(), "Invalid user", "Expected a name without a colon.")
	}
	password, given := r.password(b.Password, b.PasswordFile, b.PasswordEnv)
	if !given {
		r.wrong(b.Range, "Missing password", "Expected password_file or password_env in the auth block.")
	}
	digest.Password = password
	r.cfg.ZooKeeper.Digest = digest
}

// password reads a password, and refuses one in the configuration file itself.
func (r *reader) password(inline, file, env *hcl.Attribute) (password string, given bool) {
	if inline != nil {
		r.wrong(inline.NameRange, "Password in the configuration",
			"A secret does not belong in this file. Expected password_file or password_env, which say where it is.")
		return "", true
	}
	content, given := r.secret(file, env)
	return strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r"), given
}

func (r *reader) sasl(b *saslBlock) {
	s := &recipes.SASL{}
	before := len(r.errs)
	decode(r, b.Mechanism, `"GSSAPI" or "DIGEST-MD5"`, &s.Mechanism)
	decode(r, b.User, "a name", &s.User)
	s.Password, _ = r.password(b.Password, b.PasswordFile, b.PasswordEnv)
	r.path(b.KeytabFile, &s.Keytab)
	r.path(b.CCacheFile, &s.CCache)
	r.path(b.Krb5Conf, &s.Krb5Conf)
	decode(r, b.Service, "a name", &s.Service)
	if len(r.errs) == before {
		if _, err := (recipes.SessionConfig{Servers: anyServer, SASL: s}).Normalize(); err != nil {
			r.wrong(b.Range, "Invalid sasl", "%v", err)
		}
	}
	r.cfg.ZooKeeper.SASL = s
}

// path reads the path of a file that the plugin will read, and makes it absolute. All but krb5.conf
// are secrets.
func (r *reader) path(a *hcl.Attribute, to *string) {
	if !decode(r, a, "the path of a file", to) || *to == "" {
		return
	}
	path, err := filepath.Abs(r.relative(*to))
	if err == nil && a.Name != "krb5_conf" {
		err = private(path)
	}
	if err != nil {
		r.wrong(a.Expr.Range(), "Invalid "+a.Name, "%v", err)
	}
	*to = path
}

func (r *reader) tls(b *tlsBlock) {
	t := &recipes.TLS{}
	before := len(r.errs)
	t.CA, _ = r.secret(b.CAFile, nil)
	t.Certificate, _ = r.secret(b.CertificateFile, nil)
	t.Key, _ = r.secret(b.KeyFile, b.KeyEnv)
	decode(r, b.ServerName, "a host name", &t.ServerName)
	if len(r.errs) == before {
		if _, err := t.ClientConfig(); err != nil {
			r.wrong(b.Range, "Invalid tls", "%v", err)
		}
	}
	r.cfg.ZooKeeper.TLS = t
}

// blank reports that a secret or a certificate is empty: it was truncated, or is not mounted
// yet. An empty value would count as missing. Without a CA the system's CAs are trusted, and
// without a key the client is not authenticated.
func blank(content []byte) bool { return len(bytes.TrimSpace(content)) == 0 }

// private returns an error if everybody may read a file. A file that does not exist is private.
func private(path string) error {
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o004 != 0 {
		return fmt.Errorf("everybody may read %s (%v); chmod o-r it", path, info.Mode())
	}
	return nil
}

// readSecret reads a file. If it is a secret, it must be private.
func readSecret(path string, secret bool) ([]byte, error) {
	if secret {
		if err := private(path); err != nil {
			return nil, err
		}
	}
	return os.ReadFile(path)
}

// secret reads a secret from a file or a variable. Errors name the file or the variable, and
// never quote the secret. given is false if both attributes are missing.
func (r *reader) secret(file, env *hcl.Attribute) (content []byte, given bool) {
	if file != nil && env != nil {
		r.wrong(env.NameRange, "Two places for one secret", "Expected %s or %s, not both.", file.Name, env.Name)
		return nil, true
	}
	var name string
	switch {
	case decode(r, file, "the path of a file", &name):
		content, err := readSecret(r.relative(name), file.Name == "password_file")
		switch {
		case err != nil:
			r.wrong(file.Expr.Range(), "Unreadable "+file.Name, "%v", err)
		case blank(content):
			r.wrong(file.Expr.Range(), "Empty "+file.Name, "Expected something in the file %s, which is empty.", name)
		}
		return content, true
	case decode(r, env, "the name of an environment variable", &name):
		value, ok := os.LookupEnv(name)
		switch {
		case !ok:
			r.wrong(env.Expr.Range(), "Missing variable", "Expected the secret in the environment variable %s, which is not set.", name)
		case blank([]byte(value)):
			r.wrong(env.Expr.Range(), "Empty "+env.Name, "Expected the secret in the environment variable %s, which is empty.", name)
		}
		return []byte(value), true
	}
	return nil, file != nil || env != nil
}
