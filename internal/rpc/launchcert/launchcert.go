// Package launchcert makes the certificates for mutual TLS between a host and the plugin that
// it launches. Each side makes a certificate for one launch, and trusts only the other
// side's.
package launchcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// Name is the name in every certificate, whatever the address is.
const Name = "localhost"

// lifetime is longer than any process runs. The key is lost with the process.
const lifetime = 30 * 365 * 24 * time.Hour

// New returns a certificate with its key, and the certificate alone in PEM. It is
// self-signed, and both sides use it as the authority too. The key is on P-256: with P-521,
// as in go-plugin, starting a plugin takes some 15 ms more processor time.
func New() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: Name},
		DNSNames:              []string{Name},
		SerialNumber:          serial,
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
