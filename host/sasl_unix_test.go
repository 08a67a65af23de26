//go:build unix

package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestASessionWithSASLSurvives: a hold of a session through a plugin survives an upgrade and the
// death of the plugin. The next plugin authenticates, because the server requires it.
func TestASessionWithSASLSurvives(t *testing.T) {
	t.Run("DIGEST-MD5", func(t *testing.T) {
		e := ensembletest.StartSASL(t, `org.apache.zookeeper.server.auth.DigestLoginModule required user_jane="s3cret"`)
		survivesWithSASL(t, e.Addrs(), recipes.SASL{Mechanism: "DIGEST-MD5", User: "jane", Password: "s3cret"}, func(s *recipes.SASL) { s.Password = "wr0ng" })
	})
	t.Run("Kerberos", func(t *testing.T) {
		kdc := ensembletest.StartKDC(t)
		e := ensembletest.StartSASL(t, `com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="`+
			kdc.Keytab(t, "zookeeper/localhost")+`" principal="zookeeper/localhost@`+ensembletest.Realm+`"`, "java.security.krb5.conf", kdc.Conf)
		sasl := recipes.SASL{Mechanism: "GSSAPI", User: "app", Keytab: kdc.Keytab(t, "app"), Krb5Conf: kdc.Conf}
		empty := filepath.Join(t.TempDir(), "empty")
		must.Do(t, os.WriteFile(empty, nil, 0o600))
		survivesWithSASL(t, []string{strings.Replace(e.Connect(), "127.0.0.1", "localhost", 1)}, sasl, func(s *recipes.SASL) { s.Keytab = empty })
	})
}

// survivesWithSASL also checks that a plugin opens no session with credentials that spoil has
// changed, and that the error is that of the library.
func survivesWithSASL(t *testing.T, servers []string, sasl recipes.SASL, spoil func(*recipes.SASL)) {
	v := surviveWith(t, servers, &sasl)
	h := v.holds("/l")
	for _, replace := range []func(){v.upgrade, func() { v.kill() }} {
		replace()
		if err := errors.Join(h.Err(), h.Write(ctx(t))); err != nil {
			t.Fatal(err)
		}
		if _, err := lockAt(t, v.rival, "/l").TryAcquire(ctx(t)); !errors.Is(err, recipes.ErrContended) {
			t.Errorf("the rival: %v", err)
		}
	}
	must.Report(t, h.Release(ctx(t)))
	must.Report(t, v.session.Close(ctx(t)))
	spoil(&sasl)
	_, err := v.supervisor.Open(ctx(t), recipes.SessionConfig{Servers: servers, SASL: &sasl})
	if !errors.Is(err, recipes.ErrAuthFailed) || errors.Is(err, recipes.ErrPluginLost) || errors.Is(err, host.ErrLosesSessions) ||
		!strings.Contains(err.Error(), "SASL "+sasl.Mechanism) || strings.Contains(err.Error(), sasl.Password) && sasl.Password != "" {
		t.Errorf("%v; want ErrAuthFailed", err)
	}
}
