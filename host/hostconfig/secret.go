package hostconfig

import (
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"

	"github.com/zkrecipes/zkrecipes/internal/secret"
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
	return secret.Password(content), given
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
		err = secret.Private(path)
	}
	if err != nil {
		r.wrong(a.Expr.Range(), "Invalid "+a.Name, "%v", err)
	}
	*to = path
}

func (r *reader) tls(b *tlsBlock) {
	t := &recipes.TLS{}
	before := len(r.errs)
	// Checked here, and read again by the plugin for each connection.
	t.CAFile, t.CertificateFile, t.KeyFile = r.named(b.CAFile), r.named(b.CertificateFile), r.named(b.KeyFile)
	t.CA, _ = r.secret(b.CAFile, nil)
	t.Certificate, _ = r.secret(b.CertificateFile, nil)
	t.Key, _ = r.secret(b.KeyFile, b.KeyEnv)
	decode(r, b.ServerName, "a host name", &t.ServerName)
	decode(r, b.AnyName, "true or false", &t.AnyName)
	if len(r.errs) == before {
		if _, err := t.ClientConfig(); err != nil {
			r.wrong(b.Range, "Invalid tls", "%v", err)
		}
	}
	r.cfg.ZooKeeper.TLS = t
}

// secret reads a secret from a file or a variable. given is false if both attributes are
// missing.
func (r *reader) secret(file, env *hcl.Attribute) (content []byte, given bool) {
	if file != nil && env != nil {
		r.wrong(env.NameRange, "Two places for one secret", "Expected %s or %s, not both.", file.Name, env.Name)
		return nil, true
	}
	var name string
	var err error
	of := file
	switch {
	case decode(r, file, "the path of a file", &name):
		read := secret.File
		if file.Name == "password_file" {
			read = secret.PrivateFile
		}
		content, err = read(r.relative(name))
	case decode(r, env, "the name of an environment variable", &name):
		of = env
		content, err = secret.Variable(name)
	}
	if err != nil {
		r.wrong(of.Expr.Range(), "Invalid "+of.Name, "%v", err)
	}
	return content, file != nil || env != nil
}

// named returns the absolute name of a file, or "" for a missing or wrong attribute, which secret
// reports.
func (r *reader) named(a *hcl.Attribute) string {
	var name string
	if a == nil || gohcl.DecodeExpression(a.Expr, nil, &name).HasErrors() || name == "" {
		return ""
	}
	absolute, err := filepath.Abs(r.relative(name))
	if err != nil { // the working directory was deleted: use the contents
		return ""
	}
	return absolute
}
