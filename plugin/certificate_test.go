package plugin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// PROTOCOL.md lists the certificates that the plugin accepts. Hosts in other languages
// create theirs with tools other than the Go host's.
func TestCertificatesOfHosts(t *testing.T) {
	now := time.Now()
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, test := range []struct {
		name     string
		template x509.Certificate
		accepted bool
	}{
		{"for clients, of any name", x509.Certificate{NotAfter: now.Add(time.Hour), ExtKeyUsage: client}, true},
		{"without extended key usage", x509.Certificate{NotAfter: now.Add(time.Hour)}, true},
		{"an authority", x509.Certificate{NotAfter: now.Add(time.Hour), ExtKeyUsage: client, IsCA: true, BasicConstraintsValid: true}, true},
		{"for servers alone", x509.Certificate{NotAfter: now.Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, false},
		{"expired", x509.Certificate{NotAfter: now.Add(-time.Minute), ExtKeyUsage: client}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.template.NotBefore = now.Add(-time.Hour)
			ours, pem := selfSigned(t, &test.template)
			theirs, der, err := mutualTLS(pem)
			must.Do(t, err)
			plugins := x509.NewCertPool()
			plugins.AddCert(must.Get(x509.ParseCertificate(der))(t))
			host, plugin := net.Pipe()
			defer host.Close()
			accepted := make(chan error, 1)
			go func() {
				s := tls.Server(plugin, theirs)
				err := s.Handshake()
				_ = plugin.Close()
				accepted <- err
			}()
			s := tls.Client(host, &tls.Config{Certificates: []tls.Certificate{ours}, RootCAs: plugins, ServerName: "localhost"})
			_ = s.Handshake()
			_, _ = s.Read(make([]byte, 1)) // a server refuses after the client's handshake
			if err := <-accepted; (err == nil) != test.accepted {
				t.Errorf("accepted: %v", err)
			}
		})
	}
}

// selfSigned returns a self-signed certificate, and its PEM.
func selfSigned(t *testing.T, template *x509.Certificate) (tls.Certificate, string) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template.SerialNumber = big.NewInt(1)
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
