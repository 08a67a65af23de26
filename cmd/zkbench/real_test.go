package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// tooFewConnections checks that zkbench reports a maxClientCnxns that is too low before it runs
// anything, and leaves no file behind.
func tooFewConnections(t *testing.T, server string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "records.jsonl")
	code, stdout, stderr := whole(t, "run", "-servers", server, "-strategy", "predecessor", "-contenders", "30", "-count", "1", "-record", file)
	if want := "30 sessions are needed at once, and the servers allow 10 connections"; code != exit.Misuse || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d; want %d and %q:\n%s", code, exit.Misuse, want, stderr)
	}
	if files, _ := filepath.Glob(file + "*"); len(files) > 0 || stdout != "" {
		t.Errorf("%v was left, and on stdout\n%s", files, stdout)
	}
}

// TestFailoversOnARealServer cuts holders off. The run fails if one of them reports its loss only
// after the next contender is granted.
func TestFailoversOnARealServer(t *testing.T) {
	t.Parallel()
	e := ensembletest.Shared(t)
	code, stdout, stderr := withLivingSessions(t, func(timeout string) []string {
		return []string{
			"run", "-servers", e.Connect(), "-workload", "failover", "-recipe", "lock,election", "-contenders", "5",
			"-strategy", "herd,predecessor,handoff", "-count", "1", "-session-timeout", timeout,
		}
	})
	if want := 2 * len(recipes.Strategies()); code != exit.OK || strings.Count(stdout, "\nBenchmark") != want {
		t.Fatalf("exit code %d; want %d results:\n%s\n%s", code, want, stdout, stderr)
	}
}

// withLivingSessions runs zkbench with sessions that end soon, so that failovers are
// short. It repeats with twice the session timeout when the machine is too busy to keep them
// alive, or for a server to answer in time.
func withLivingSessions(t *testing.T, args func(timeout string) []string) (code int, stdout, stderr string) {
	t.Helper()
	for timeout := time.Second; ; timeout *= 2 {
		code, stdout, stderr = whole(t, args(timeout.String())...)
		busy := strings.Contains(stderr, recipes.ErrSessionLost.Error()) || strings.Contains(stderr, "no ZooKeeper server answers")
		if code != exit.Failed || !busy || timeout > 30*time.Second {
			return code, stdout, stderr
		}
		t.Logf("with sessions of %v: %s", timeout, stderr)
	}
}

// TestScriptsOnARealServer runs the scripts that need a real ZooKeeper, which is
// $SERVERS.
func TestScriptsOnARealServer(t *testing.T) {
	t.Parallel()
	e := ensembletest.Shared(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "real"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("SERVERS", e.Connect())
			return withGo(env)
		},
	})
}

// TestObjectiveOnARealServer limits the rate by holds, whatever other work the machine does:
// holds of 50 ms allow twenty a second. If the machine is too busy for any pass, the test
// repeats with half the rates and twice the times. It ignores late starts of zkbench.
func TestObjectiveOnARealServer(t *testing.T) {
	testall.Require(t)
	t.Parallel()
	e := ensembletest.Shared(t)
	for slower := 1; slower <= 64; slower *= 2 {
		times := func(d time.Duration) string { return (time.Duration(slower) * d).String() }
		code, stdout, stderr := whole(t,
			"slo", "-servers", e.Connect(), "-over", "rate", "-under", times(200*time.Millisecond), "-hold", times(50*time.Millisecond),
			"-arrivals", "constant", "-contenders", "4", "-from", fmt.Sprint(max(1, 2/slower)), "-to", "64", "-precision", "0.5",
			"-duration", times(500*time.Millisecond), "-warmup", "10ms",
		)
		var pass, fail int
		for line := range strings.Lines(stdout) {
			_, _ = fmt.Sscanf(line, "last pass: rate %d", &pass)
			_, _ = fmt.Sscanf(line, "first fail: rate %d", &fail)
		}
		if pass == 0 {
			t.Logf("%d times slower: exit code %d:\n%s\n%s", slower, code, stdout, stderr)
			continue
		}
		if code != exit.OK || fail <= pass || pass > max(1, 40/slower) {
			t.Errorf("%d times slower: exit code %d, last pass %d, first fail %d:\n%s\n%s", slower, code, pass, fail, stdout, stderr)
		}
		return
	}
	t.Error("no pass, however slow the machine may be")
}

// A thousand contenders, each with a session of its own, fit in one process and on one server,
// and a handoff has the same exact cost.
func TestAThousandContendersOnOneRealServer(t *testing.T) {
	testall.Require(t)
	ensembletest.Require(t)
	code, stdout, stderr := whole(t, "run", "-ensemble", "1", "-strategy", "predecessor", "-contenders", "1000", "-count", "1")
	if code != exit.OK {
		t.Fatalf("exit code %d:\n%s", code, stderr)
	}
	for _, want := range []string{"contenders=1000", " 999 ", " 1 watch-events/op", " 2 reads/op", "MB-rss"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

// TestServersThatSpeakTLSAndAllowTenConnections measures a real server through its secure port,
// which requires a certificate. It covers sessions, four-letter words, and a failover, whose
// sessions go through a relay at another address. The server allows ten connections, and reports
// that at its plain port.
func TestServersThatSpeakTLSAndAllowTenConnections(t *testing.T) {
	t.Parallel()
	ensembletest.Require(t)
	cert, key := certificate(t)
	cfg := ensembletest.Quick(1)
	cfg.TLS = &ensemble.TLSConfig{CertFile: cert, KeyFile: key}
	cfg.Properties = map[string]string{"maxClientCnxns": "10"}
	e := ensembletest.Start(t, cfg)
	tooFewConnections(t, e.Connect())
	server := e.Server(0)
	args := []string{"run", "-servers", server.SecureAddr(), "-strategy", "predecessor", "-contenders", "3", "-count", "1"}
	code, stdout, stderr := withLivingSessions(t, func(timeout string) []string {
		return append(args[:len(args):len(args)], "-session-timeout", timeout, "-workload", "drain,failover",
			"-chroot", "/secure", "-tls-server-name", handshake.CertificateName, "-tls-ca-file", cert, "-tls-certificate-file", cert, "-tls-key-file", key)
	})
	if code != exit.OK || strings.Count(stdout, "\nBenchmark") != 2 {
		t.Fatalf("exit code %d:\n%s\n%s", code, stdout, stderr)
	}
	for _, want := range []string{"zk-mode: standalone", "zk-version: 3.", "server-packets/op"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if code, _, stderr := whole(t, append(args, "-tls")...); code != exit.Failed || !strings.Contains(stderr, "certificate") {
		t.Errorf("without the authority: exit code %d:\n%s", code, stderr)
	}
}

// certificate makes a self-signed certificate for localhost and returns its files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	pair, public, err := handshake.NewCertificate()
	must.Do(t, err)
	secret := must.Get(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	must.Do(t, os.WriteFile(cert, public, 0o600))
	must.Do(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}
