package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/kdctest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// startSASL starts a server that requires SASL. login is the JAAS configuration; "" is none.
func startSASL(t *testing.T, login string, properties ...string) *ensemble.Ensemble {
	cfg := ensembletest.Quick(1)
	cfg.SystemProperties["zookeeper.sessionRequireClientSASLAuth"] = "true"
	if login != "" {
		file := filepath.Join(t.TempDir(), "jaas.conf")
		must.Do(t, os.WriteFile(file, []byte("Server {\n"+login+";\n};\n"), 0o600))
		cfg.SystemProperties["java.security.auth.login.config"] = file
	}
	for i := 0; i < len(properties); i += 2 {
		cfg.SystemProperties[properties[i]] = properties[i+1]
	}
	cfg.Properties = map[string]string{"authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
	return ensembletest.Start(t, cfg)
}

const digestLogin = `org.apache.zookeeper.server.auth.DigestLoginModule required user_jane="pässwörd 7" user_joe="日本"`

func jane() *recipes.SASL {
	return &recipes.SASL{Mechanism: "DIGEST-MD5", User: "jane", Password: "pässwörd 7"}
}

// localhost returns the servers' addresses with the name in their principal.
func localhost(e *ensemble.Ensemble) (servers []string) {
	for _, address := range e.Addrs() {
		servers = append(servers, strings.Replace(address, "127.0.0.1", "localhost", 1))
	}
	return servers
}

func TestSASLDigest(t *testing.T) {
	e := startSASL(t, digestLogin)
	for _, user := range []*recipes.SASL{jane(), {Mechanism: "DIGEST-MD5", User: "joe", Password: "日本"}} {
		s := open(t, recipes.SessionConfig{Servers: e.Addrs(), SASL: user})
		must.Get(s.Get(bounded(t), "/"))(t)
	}
	wrong := jane()
	wrong.Password = "s3cret"
	_, err := session.Open(bounded(t), recipes.SessionConfig{Servers: e.Addrs(), SASL: wrong}, nil)
	t.Log(err)
	if !errors.Is(err, recipes.ErrAuthFailed) {
		t.Error(err)
	}
}

func TestSASLKerberos(t *testing.T) {
	kdc := kdctest.Start(t)
	e := startSASL(t, `com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="`+
		kdc.Keytab(t, "zookeeper/localhost")+`" principal="zookeeper/localhost@`+kdctest.Realm+`"`,
		"java.security.krb5.conf", kdc.Conf)
	cfg := recipes.SessionConfig{Servers: localhost(e), SASL: &recipes.SASL{
		Mechanism: "GSSAPI", User: "app", Keytab: kdc.Keytab(t, "app"), Krb5Conf: kdc.Conf,
	}}
	s, err := session.Open(bounded(t), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(s) })
	must.Get(s.Get(bounded(t), "/"))(t)
}

// If a server requires SASL, its first answer says so.
func TestServerThatRequiresSASL(t *testing.T) {
	e := startSASL(t, "")
	s, err := session.Open(bounded(t), recipes.SessionConfig{Servers: e.Addrs()}, nil)
	if err == nil {
		_, err = s.Get(bounded(t), "/")
		closeNow(s)
	}
	if !errors.Is(err, recipes.ErrSASLRequired) {
		t.Errorf("got %v", err)
	}
}
