package ensemble_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

func TestTLSWithoutClientCertificates(t *testing.T) {
	keys := map[string]func() crypto.Signer{"ECDSA": ecdsaKey, "RSA": rsaKey}
	for name, key := range keys {
		t.Run(name, func(t *testing.T) {
			own := newIdentity(t, key())
			s := startTLS(t, own, false)
			answer, err := askOverTLS(s, &tls.Config{RootCAs: own.pool})
			if err != nil || !strings.Contains(answer, "Mode: standalone") {
				t.Errorf("srvr over TLS: %q, %v", answer, err)
			}
		})
	}
}

func TestTLSWithClientCertificates(t *testing.T) {
	own := newIdentity(t, ecdsaKey())
	s := startTLS(t, own, true)

	answer, err := askOverTLS(s, &tls.Config{RootCAs: own.pool, Certificates: []tls.Certificate{own.pair}})
	if err != nil || !strings.Contains(answer, "Mode: standalone") {
		t.Errorf("with a certificate: %q, %v", answer, err)
	}
	if answer, err := askOverTLS(s, &tls.Config{RootCAs: own.pool}); err == nil {
		t.Errorf("without a certificate the server answered %q", answer)
	}
	other := newIdentity(t, ecdsaKey())
	if answer, err := askOverTLS(s, &tls.Config{RootCAs: own.pool, Certificates: []tls.Certificate{other.pair}}); err == nil {
		t.Errorf("with a certificate of another authority the server answered %q", answer)
	}
}

func startTLS(t *testing.T, own identity, requireClientCert bool) *ensemble.Server {
	t.Helper()
	cfg := ensembletest.Quick(1)
	cfg.TLS = &ensemble.TLSConfig{CertFile: own.certFile, KeyFile: own.keyFile, RequireClientCert: requireClientCert}
	return ensembletest.Start(t, cfg).Server(0)
}

// askOverTLS sends srvr to the secure port.
func askOverTLS(s *ensemble.Server, cfg *tls.Config) (string, error) {
	conn, err := tls.Dial("tcp", s.SecureAddr(), cfg)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(watchdog.Patience))
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// identity is a self-signed certificate for 127.0.0.1, and its own authority.
type identity struct {
	certFile, keyFile string
	pair              tls.Certificate
	pool              *x509.CertPool
}

func newIdentity(t *testing.T, key crypto.Signer) identity {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "ensemble test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	id := identity{pool: x509.NewCertPool()}
	id.certFile = writePEM(t, "cert.pem", "CERTIFICATE", cert)
	id.keyFile = writeKey(t, key)
	if id.pair, err = tls.LoadX509KeyPair(id.certFile, id.keyFile); err != nil {
		t.Fatal(err)
	}
	id.pool.AddCert(id.pair.Leaf)
	return id
}

// writeKey writes the key in the form that was openssl's default for a long time. ZooKeeper
// does not read that form itself.
func writeKey(t *testing.T, key crypto.Signer) string {
	t.Helper()
	if key, ok := key.(*rsa.PrivateKey); ok {
		return writePEM(t, "key.pem", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	}
	der, err := x509.MarshalECPrivateKey(key.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, "key.pem", "EC PRIVATE KEY", der)
}

func writePEM(t *testing.T, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func ecdsaKey() crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func rsaKey() crypto.Signer {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}
