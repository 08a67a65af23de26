// Package kdctest starts a Kerberos KDC (Debian's krb5-kdc) on loopback, in the foreground and with
// files of its own. If it is not installed, the test is skipped, and a message says how to
// install it. With ZKRECIPES_REQUIRE_ZOOKEEPER set, as in CI, it fails instead.
package kdctest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// Realm is the realm of every KDC.
const Realm = "ZK.TEST"

// KDC is a running KDC, and its realm.
type KDC struct {
	Conf string // the path of krb5.conf
	dir  string
	kill context.CancelFunc
	done chan struct{}
}

// Start starts a KDC and stops it when the test ends.
func Start(t testing.TB) *KDC {
	t.Helper()
	for _, program := range []string{"krb5kdc", "kdb5_util", "kadmin.local", "kinit"} {
		if _, err := path(program); err != nil {
			const how = "SKIPPED with Kerberos: %v; apt-get install krb5-kdc krb5-admin-server krb5-user"
			if os.Getenv("ZKRECIPES_REQUIRE_ZOOKEEPER") != "" {
				t.Fatalf(how, err)
			}
			t.Skipf(how, err)
		}
	}
	dir := t.TempDir()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := l.Addr().String()
	l.Close()
	k := &KDC{Conf: filepath.Join(dir, "krb5.conf"), dir: dir, done: make(chan struct{})}
	must.Do(t, os.WriteFile(k.Conf, fmt.Appendf(nil, `[libdefaults]
 default_realm = %[1]s
 dns_lookup_kdc = false
 dns_lookup_realm = false
 rdns = false
[realms]
 %[1]s = {
  kdc = %[2]s
 }
`, Realm, address), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "kdc.conf"), fmt.Appendf(nil, `[realms]
 %[1]s = {
  database_name = %[2]s/principal
  key_stash_file = %[2]s/stash
  kdc_listen = %[3]s
  kdc_tcp_listen = %[3]s
 }
[logging]
 kdc = FILE:%[2]s/kdc.log
`, Realm, dir, address), 0o600))
	k.Run(t, "kdb5_util", "create", "-s", "-W", "-P", "secret")

	ctx, kill := context.WithCancel(context.Background())
	k.kill = kill
	cmd := k.command(ctx, "krb5kdc", "-n", "-P", filepath.Join(dir, "pid"))
	must.Do(t, cmd.Start())
	go func() { _ = cmd.Wait(); close(k.done) }()
	t.Cleanup(k.Stop)
	for { // until it listens
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return k
		}
		select {
		case <-k.done:
			t.Fatalf("krb5kdc ended: %s", must.Get(os.ReadFile(filepath.Join(dir, "kdc.log")))(t))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Stop kills the KDC.
func (k *KDC) Stop() { k.kill(); <-k.done }

// Keytab creates a principal with a random key, and returns the path of its keytab.
func (k *KDC) Keytab(t testing.TB, principal string) string {
	t.Helper()
	file := filepath.Join(k.dir, strings.ReplaceAll(principal, "/", "-")+".keytab")
	k.Run(t, "kadmin.local", "-q", "addprinc -randkey "+principal)
	k.Run(t, "kadmin.local", "-q", "ktadd -k "+file+" "+principal)
	return file
}

// Login returns the path of a credential cache with a ticket of the principal.
func (k *KDC) Login(t testing.TB, principal, keytab string) string {
	t.Helper()
	file := filepath.Join(k.dir, "cache")
	k.Run(t, "kinit", "-k", "-t", keytab, "-c", file, principal)
	return file
}

// Run runs a program of Kerberos with the KDC's configuration.
func (k *KDC) Run(t testing.TB, program string, args ...string) {
	t.Helper()
	if out, err := k.command(t.Context(), program, args...).CombinedOutput(); err != nil || bytes.Contains(out, []byte("while")) { // kadmin.local reports errors so, with exit code 0
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
}

func (k *KDC) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	name, _ := path(program)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "KRB5_CONFIG="+k.Conf, "KRB5_KDC_PROFILE="+filepath.Join(k.dir, "kdc.conf"))
	return cmd
}

// path finds a program that may be outside a user's PATH.
func path(program string) (string, error) {
	if found, err := exec.LookPath(program); err == nil {
		return found, nil
	}
	return exec.LookPath("/usr/sbin/" + program)
}
