package ensembletest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// Realm is the realm of every KDC.
const Realm = "ZK.TEST"

// KDC is a Kerberos KDC, Debian's krb5-kdc, that runs on loopback with files of its own.
type KDC struct {
	Conf string // the path of krb5.conf
	dir  string
	kill context.CancelFunc
	done chan struct{}
}

// StartKDC starts a KDC and stops it when the test ends. If it is not installed, the test is
// skipped with a message, or fails if CI requires a real ZooKeeper.
func StartKDC(t testing.TB) *KDC {
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
	k := &KDC{Conf: filepath.Join(dir, "krb5.conf"), dir: dir, done: make(chan struct{})}
	must.Do(t, os.WriteFile(k.Conf, fmt.Appendf(nil, `[libdefaults]
 default_realm = %[1]s
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
`, Realm, dir, address), 0o600))
	k.Run(t, "kdb5_util", "create", "-s", "-W", "-P", "secret")
	ctx, kill := context.WithCancel(context.Background())
	k.kill = kill
	cmd := k.command(ctx, "krb5kdc", "-n", "-P", filepath.Join(dir, "pid"))
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // as ensemble.BindToParent requires
		defer runtime.UnlockOSThread()
		defer close(k.done)
		ensemble.BindToParent(cmd)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	must.Do(t, <-started)
	t.Cleanup(k.Stop)
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

// Stop kills the KDC.
func (k *KDC) Stop() { k.kill(); <-k.done }

// Keytab creates a principal with a random key, and returns the path of its keytab. The principal
// must pre-authenticate, as with most KDCs.
func (k *KDC) Keytab(t testing.TB, principal string) string {
	t.Helper()
	file := filepath.Join(k.dir, strings.ReplaceAll(principal, "/", "-")+".keytab")
	k.Run(t, "kadmin.local", "-q", "addprinc -randkey +requires_preauth "+principal)
	k.Run(t, "kadmin.local", "-q", "ktadd -k "+file+" "+principal)
	return file
}

// Run runs a program of Kerberos with the KDC's configuration.
func (k *KDC) Run(t testing.TB, program string, args ...string) {
	t.Helper()
	if out, err := k.command(t.Context(), program, args...).CombinedOutput(); err != nil || bytes.Contains(out, []byte("while")) { // kadmin.local prints "while" in each error, and exits with 0
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
}

func (k *KDC) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KRB5_CONFIG="+k.Conf, "KRB5_KDC_PROFILE="+filepath.Join(k.dir, "kdc.conf"))
	return cmd
}

// StartSASL starts a server that requires SASL, with this JAAS configuration, unless it is "".
func StartSASL(t testing.TB, login string, properties ...string) *ensemble.Ensemble {
	cfg := Quick(1)
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
	return Start(t, cfg)
}
