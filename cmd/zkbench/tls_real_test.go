package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
)

// TestServersThatSpeakTLS measures a real server through its secure port, which
// asks for a certificate: sessions, four-letter words, and a failover, whose
// sessions go through a relay of another address.
func TestServersThatSpeakTLS(t *testing.T) {
	t.Parallel()
	ensembletest.Require(t)
	cert, key := certificate(t)
	cfg := ensembletest.Quick(1)
	cfg.TLS = &ensemble.TLSConfig{CertFile: cert, KeyFile: key, RequireClientCert: true}
	server := ensembletest.Start(t, cfg).Server(0)
	args := []string{"run", "-servers", server.SecureAddr(), "-strategy", "predecessor", "-contenders", "3", "-count", "1"}
	code, stdout, stderr := withLivingSessions(t, func(timeout string) []string {
		return append(args[:len(args):len(args)], "-session-timeout", timeout, "-workload", "drain,failover",
			"-chroot", "/secure", "-tls-ca-file", cert, "-tls-certificate-file", cert, "-tls-key-file", key)
	})
	if code != exitOK || strings.Count(stdout, "\nBenchmark") != 2 {
		t.Fatalf("exit code %d:\n%s\n%s", code, stdout, stderr)
	}
	for _, want := range []string{"zk-mode: standalone", "zk-version: 3.", "server-packets/op"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if code, _, stderr := whole(t, append(args, "-tls")...); code != exitFailed || !strings.Contains(stderr, "certificate") {
		t.Errorf("without the authority: exit code %d:\n%s", code, stderr)
	}
}

// certificate makes a certificate for 127.0.0.1 that is its own authority, and
// returns the files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "zkbench test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
}
