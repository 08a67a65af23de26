package ensemble

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// TLSConfig opens a second client port that speaks TLS. The plain port stays,
// for the four-letter words. Both are then served by Netty instead of
// ZooKeeper's own NIO, so figures with and without TLSConfig differ by more than TLS. The
// server refuses clients without a certificate of one of the authorities.
type TLSConfig struct {
	CertFile string // the server's certificate chain, PEM
	KeyFile  string // its private key, RSA or ECDSA, unencrypted, PEM in any of its forms
	CAFile   string // the authorities of the clients' certificates, PEM; "" for CertFile
}

const (
	keyStoreFile   = "keystore.pem"
	trustStoreFile = "truststore.pem"
)

// stores returns the two files that ZooKeeper reads. Its PEM key store has the key and the
// chain in one file, and the key must be in PKCS #8 form.
func (t *TLSConfig) stores() (map[string]string, error) {
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.KeyFile, err)
	}
	keyStore := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	for _, cert := range pair.Certificate {
		keyStore = append(keyStore, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})...)
	}
	trustStore, err := os.ReadFile(cmp.Or(t.CAFile, t.CertFile))
	if err != nil {
		return nil, err
	}
	return map[string]string{keyStoreFile: string(keyStore), trustStoreFile: string(trustStore)}, nil
}

func (t *TLSConfig) zooCfg(dir string, port int) map[string]string {
	return map[string]string{
		"secureClientPort":        strconv.Itoa(port),
		"secureClientPortAddress": loopbackIP,
		"serverCnxnFactory":       "org.apache.zookeeper.server.NettyServerCnxnFactory",
		"ssl.keyStore.location":   filepath.Join(dir, keyStoreFile),
		"ssl.keyStore.type":       "PEM",
		"ssl.trustStore.location": filepath.Join(dir, trustStoreFile),
		"ssl.trustStore.type":     "PEM",
		"ssl.clientAuth":          "need",
	}
}
