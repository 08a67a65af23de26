package session_test

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

// realm is the realm of every KDC.
const realm = "ZK.TEST"

// kdc is a Kerberos KDC, Debian's krb5-kdc, that runs on loopback with files of its own.
type kdc struct {
	conf string // the path of krb5.conf
	dir  string
	kill context.CancelFunc
	done chan struct{}
}

// startKDC starts a KDC and stops it when the test ends. If it is not installed, the test is
// skipped with a message, or fails if CI requires a real ZooKeeper.
func startKDC(t *testing.T) *kdc {
	t.Helper()
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	for _, program := range []string{"krb5kdc", "kdb5_util", "kadmin.local", "kinit"} {
		const how = "SKIPPED with Kerberos: %v; apt-get install krb5-kdc krb5-admin-server krb5-user"
		if _, err := exec.LookPath(program); err != nil && os.Getenv("ZKRECIPES_REQUIRE_ZOOKEEPER") != "" {
			t.Fatalf(how, err)
		} else if err != nil {
			t.Skipf(how, err)
		}
	}
	dir := t.TempDir()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := l.Addr().String()
	l.Close()
	k := &kdc{conf: filepath.Join(dir, "krb5.conf"), dir: dir, done: make(chan struct{})}
	must.Do(t, os.WriteFile(k.conf, fmt.Appendf(nil, `[libdefaults]
 default_realm = %[1]s
[realms]
 %[1]s = {
  kdc = %[2]s
 }
`, realm, address), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "kdc.conf"), fmt.Appendf(nil, `[realms]
 %[1]s = {
  database_name = %[2]s/principal
  key_stash_file = %[2]s/stash
  kdc_listen = %[3]s
  kdc_tcp_listen = %[3]s
 }
`, realm, dir, address), 0o600))
	k.run(t, "kdb5_util", "create", "-s", "-W", "-P", "secret")
	ctx, kill := context.WithCancel(context.Background())
	k.kill = kill
	cmd := k.command(ctx, "krb5kdc", "-n", "-P", filepath.Join(dir, "pid"))
	must.Do(t, cmd.Start())
	go func() { _ = cmd.Wait(); close(k.done) }()
	t.Cleanup(k.stop)
	for { // until it listens
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return k
		}
		select {
		case <-k.done:
			t.Fatal("krb5kdc has ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stop kills the KDC.
func (k *kdc) stop() { k.kill(); <-k.done }

// keytab creates a principal with a random key, and returns the path of its keytab.
func (k *kdc) keytab(t *testing.T, principal string) string {
	t.Helper()
	file := filepath.Join(k.dir, strings.ReplaceAll(principal, "/", "-")+".keytab")
	k.run(t, "kadmin.local", "-q", "addprinc -randkey "+principal)
	k.run(t, "kadmin.local", "-q", "ktadd -k "+file+" "+principal)
	return file
}

// login returns the path of a credential cache with a ticket of the principal.
func (k *kdc) login(t *testing.T, principal, keytab string) string {
	t.Helper()
	file := filepath.Join(k.dir, "cache")
	k.run(t, "kinit", "-k", "-t", keytab, "-c", file, principal)
	return file
}

// run runs a program of Kerberos with the KDC's configuration.
func (k *kdc) run(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := k.command(t.Context(), program, args...).CombinedOutput(); err != nil || bytes.Contains(out, []byte("while")) { // kadmin.local reports errors so, with exit code 0
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
}

func (k *kdc) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KRB5_CONFIG="+k.conf, "KRB5_KDC_PROFILE="+filepath.Join(k.dir, "kdc.conf"))
	return cmd
}
