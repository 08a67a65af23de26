package session_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	PEM  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.PEM, _, a.cert, a.key = a.sign(template)
	return a
}

func (a *authority) issue(name string) (certificate, key []byte) {
	certificate, key, _, _ = a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return certificate, key
}

func (a *authority) sign(template *x509.Certificate) (certPEM, keyPEM []byte, cert *x509.Certificate, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), cert, key
}

func TestTLSToARealServer(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, content, 0o600))
		return path
	}
	cert, key := ca.issue("zookeeper.test")
	cfg := ensembletest.Quick(1)
	cfg.TLS = &ensemble.TLSConfig{
		CertFile: write("server.pem", cert), KeyFile: write("server.key", key), CAFile: write("ca.pem", ca.PEM),
		RequireClientCert: true,
	}
	addr := ensembletest.Start(t, cfg).Server(0).SecureAddr()
	clientCert, clientKey := ca.issue("client")
	strangeCert, strangeKey := stranger.issue("client")

	for _, tt := range []struct {
		name string
		tls  *recipes.TLS
		ok   bool
	}{
		{"mutual", &recipes.TLS{CA: ca.PEM, Certificate: clientCert, Key: clientKey}, true},
		{"server name", &recipes.TLS{CA: ca.PEM, Certificate: clientCert, Key: clientKey, ServerName: "zookeeper.test"}, true},
		{"wrong server name", &recipes.TLS{CA: ca.PEM, Certificate: clientCert, Key: clientKey, ServerName: "other.test"}, false},
		{"server signed by a stranger", &recipes.TLS{CA: stranger.PEM, Certificate: clientCert, Key: clientKey}, false},
		{"client signed by a stranger", &recipes.TLS{CA: ca.PEM, Certificate: strangeCert, Key: strangeKey}, false},
		{"no client certificate", &recipes.TLS{CA: ca.PEM}, false},
		{"no TLS", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wait := watchdog.Patience
			if !tt.ok {
				wait = 700 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			s, err := session.Open(ctx, recipes.SessionConfig{Servers: []string{addr}, TLS: tt.tls}, nil)
			if !tt.ok {
				if !errors.Is(err, recipes.ErrUnavailable) {
					t.Fatalf("got %v", err)
				}
				t.Log(err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.CreateProtected(ctx, "/tls", "lock-", nil); err != nil {
				t.Error(err)
			}
			if err := s.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheErrorForBadKeyMaterialDoesNotShowIt(t *testing.T) {
	ca := newAuthority(t)
	cert, _ := ca.issue("a")
	_, otherKey := ca.issue("b")
	_, err := session.Open(bounded(t), recipes.SessionConfig{Servers: []string{"127.0.0.1"}, TLS: &recipes.TLS{Certificate: cert, Key: otherKey}}, nil)
	if !errors.Is(err, recipes.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
}
