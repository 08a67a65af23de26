// Package handshake holds what a host and a plugin agree on before they use gRPC. These are
// the names and values of go-plugin's handshake, the environment of a plugin process, and the
// certificates.
// plugin/proto/PROTOCOL.md lists them for hosts in other languages.
package handshake

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// Name is the name of the plugin in go-plugin's sets.
const Name = "recipes"

// Version is the version of zkrecipes.v1 in go-plugin's handshake.
const Version = 1

const (
	// LogLevelEnv is the environment variable in which a host passes the plugin's log level,
	// as a name of hclog.
	LogLevelEnv = "ZKRECIPES_PLUGIN_LOG_LEVEL"

	// LifetimeEnv is the environment variable in which a host passes the number of a plugin's
	// descriptor: the reading end of a pipe. After the host has died, the plugin keeps the
	// host's sessions as long as any process has the writing end open.
	LifetimeEnv = "ZKRECIPES_PLUGIN_LIFETIME"

	// CertificateEnv is the variable in which go-plugin passes the host's certificate.
	CertificateEnv = "PLUGIN_CLIENT_CERT"
)

// Config is go-plugin's magic cookie. It is public and protects nothing. By it a plugin
// recognizes that a host has started it, and not a person.
func Config() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		MagicCookieKey:   "ZKRECIPES_PLUGIN",
		MagicCookieValue: "5b1c9f0e-recipes-of-zookeeper",
	}
}

// Host is the plugin set of a host. The dispensed value is the *grpc.ClientConn to the
// plugin.
func Host() map[int]goplugin.PluginSet {
	return Plugin(func(*grpc.Server) error { return errors.New("a host serves nothing") })
}

// Plugin is the plugin set of a plugin, whose services are registered by register.
func Plugin(register func(*grpc.Server) error) map[int]goplugin.PluginSet {
	return map[int]goplugin.PluginSet{Version: {Name: &ends{register: register}}}
}

// ends is the plugin for go-plugin, which only connects the host and the plugin. The services
// have their own stubs.
type ends struct {
	goplugin.NetRPCUnsupportedPlugin
	register func(*grpc.Server) error
}

func (p *ends) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error { return p.register(s) }

func (p *ends) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// ReattachEnv names the environment variable that makes a host use a running plugin, for
// example one in a debugger, instead of launching one. Its value is a [Reattach] in JSON.
const ReattachEnv = "ZKRECIPES_PLUGIN_REATTACH"

// Reattach is the address of a plugin that is being debugged.
type Reattach struct {
	ProtocolVersion int    `json:"protocol_version"`
	PID             int    `json:"pid"`
	Network         string `json:"network"` // "unix" or "tcp"
	Address         string `json:"address"`
}

// ParseReattach reads the value of ReattachEnv.
func ParseReattach(value string) (Reattach, error) {
	var r Reattach
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		return r, fmt.Errorf("%s is not what zkrecipes-plugin -debug prints: %w", ReattachEnv, err)
	}
	switch {
	case r.Network != "unix" && r.Network != "tcp" || r.Address == "":
		return r, fmt.Errorf("%s: no address to connect to in %q", ReattachEnv, value)
	case r.ProtocolVersion != Version:
		return r, fmt.Errorf("%s: the plugin has protocol version %d, this host %d", ReattachEnv, r.ProtocolVersion, Version)
	}
	return r, nil
}

// CertificateName is the name in every certificate, whatever the address is.
const CertificateName = "localhost"

// certificateLifetime is longer than any process runs. The key is lost with the process.
const certificateLifetime = 30 * 365 * 24 * time.Hour

// NewCertificate returns a certificate for mutual TLS between a host and the plugin that it
// launches, with its key, and the certificate alone in PEM. Each side makes one for one launch,
// and trusts only the other side's. It is self-signed, and both sides use it as the authority too.
// The key is on P-256: with P-521, as in go-plugin, starting a plugin takes some 15 ms more
// processor time.
func NewCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: CertificateName},
		DNSNames:              []string{CertificateName},
		SerialNumber:          serial,
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().Add(certificateLifetime),
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
