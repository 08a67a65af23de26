package session_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
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
	key = must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer))(a.t)
	cert = must.Get(x509.ParseCertificate(der))(a.t)
	keyDER := must.Get(x509.MarshalPKCS8PrivateKey(key))(a.t)
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
	}
	server := ensembletest.Start(t, cfg).Server(0)
	clientCert, clientKey := ca.issue("client")
	strangeCert, strangeKey := stranger.issue("client")

	for _, tt := range []struct {
		name    string
		addr    string
		tls     *recipes.TLS
		refused string // a part of the error; "" if the session is opened
	}{
		{"mutual", server.SecureAddr(), &recipes.TLS{CA: ca.PEM, Certificate: clientCert, Key: clientKey}, ""},
		{"server name", server.SecureAddr(), &recipes.TLS{CA: ca.PEM, Certificate: clientCert, Key: clientKey, ServerName: "zookeeper.test"}, ""},
		{"wrong server name", server.SecureAddr(), &recipes.TLS{CA: ca.PEM, Certificate: clientCert, Key: clientKey, ServerName: "other.test"}, "other.test"},
		{"server signed by a stranger", server.SecureAddr(), &recipes.TLS{CA: stranger.PEM, Certificate: clientCert, Key: clientKey}, "unknown authority"},
		{"client signed by a stranger", server.SecureAddr(), &recipes.TLS{CA: ca.PEM, Certificate: strangeCert, Key: strangeKey}, "last attempt: "},
		{"no client certificate", server.SecureAddr(), &recipes.TLS{CA: ca.PEM}, "last attempt: "},
		{"no TLS", server.SecureAddr(), nil, "does it speak TLS there?"},
		{"TLS where the server speaks none", server.Addr(), &recipes.TLS{CA: ca.PEM}, "probably the server speaks no TLS there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := recipes.SessionConfig{Servers: []string{tt.addr}, TLS: tt.tls}
			if tt.refused != "" {
				refusal(t, cfg, tt.refused)
				return
			}
			s := open(t, cfg)
			must.Get(s.CreateProtected(zktest.Bounded(t), "/tls", "lock-", nil))(t)
			must.Report(t, s.Close(zktest.Bounded(t)))
		})
	}
}

// secured is a server behind TLS. It keeps the names of its clients' certificates.
type secured struct {
	*zkserver.Server
	addr    string
	clients chan string
}

func serveTLS(t *testing.T, ca *authority, certificate, key []byte) *secured {
	t.Helper()
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca.PEM)
	listener := must.Get(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{must.Get(tls.X509KeyPair(certificate, key))(t)},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: clients,
	}))(t)
	srv := &secured{zkserver.New(zkserver.Config{}), listener.Addr().String(), make(chan string, 100)}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				if c := c.(*tls.Conn); c.Handshake() == nil {
					srv.clients <- c.ConnectionState().PeerCertificates[0].Subject.CommonName
					srv.ServeConn(c)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		_ = srv.Close()
		served.Wait()
	})
	return srv
}

// A session that ran longer than its certificate was lost at the next reconnect.
func TestARenewedCertificateIsUsed(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	srv := func() *secured { cert, key := ca.issue("server"); return serveTLS(t, ca, cert, key) }()
	file := func(name string) string { return filepath.Join(dir, name) }
	renew := func(client string) (certificate, key []byte) {
		certificate, key = ca.issue(client)
		must.Do(t, os.WriteFile(file("client.pem"), certificate, 0o600))
		must.Do(t, os.WriteFile(file("client.key"), key, 0o600))
		return certificate, key
	}
	certificate, key := renew("first")
	s := open(t, recipes.SessionConfig{Servers: []string{srv.addr}, TLS: &recipes.TLS{
		CA: ca.PEM, Certificate: certificate, Key: key, CertificateFile: file("client.pem"), KeyFile: file("client.key"),
	}})
	is := func(want string) {
		t.Helper()
		if got := <-srv.clients; got != want {
			t.Errorf("the client is %s; want %s", got, want)
		}
	}
	is("first")
	renew("second")
	cutAndWait(t, srv.Server, s)
	is("second")
	_, key = ca.issue("third")
	must.Do(t, os.WriteFile(file("client.key"), key, 0o600)) // its certificate does not exist yet
	cutAndWait(t, srv.Server, s)
	is("second")
	must.Do(t, errors.Join(os.Remove(file("client.pem")), os.Remove(file("client.key"))))
	cutAndWait(t, srv.Server, s)
	is("first") // like in a plugin that cannot read the files
}

// ZooKeeper's guide makes certificates that have a common name only. crypto/tls ignores it.
func TestACertificateWithoutTheServersName(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	between := &authority{t: t}
	between.PEM, _, between.cert, between.key = ca.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "between"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	certificate, key, _, _ := between.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "zk1"}, KeyUsage: x509.KeyUsageDigitalSignature})
	certificate = append(certificate, between.PEM...)
	srv := serveTLS(t, ca, certificate, key)
	mine, mineKey := ca.issue("client")
	refusal(t, recipes.SessionConfig{Servers: []string{srv.addr}, TLS: &recipes.TLS{CA: ca.PEM, Certificate: mine, Key: mineKey}}, "any_name")
	refusal(t, recipes.SessionConfig{Servers: []string{srv.addr}, TLS: &recipes.TLS{CA: stranger.PEM, Certificate: mine, Key: mineKey, AnyName: true}}, "unknown authority")
	s := open(t, recipes.SessionConfig{Servers: []string{srv.addr}, TLS: &recipes.TLS{CA: ca.PEM, Certificate: mine, Key: mineKey, AnyName: true}})
	must.Report(t, s.Close(zktest.Bounded(t)))
}
