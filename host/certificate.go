package host

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/zkrecipes/zkrecipes/internal/rpc/launchcert"
)

// clientCertificate is the variable in which go-plugin passes the host's certificate.
const clientCertificate = "PLUGIN_CLIENT_CERT"

// mutualTLS returns the host's TLS configuration for the plugin of this launch, and the
// variable that gives the plugin the host's certificate. No other process can make that
// connection. go-plugin's AutoMTLS does the same with keys that are twenty times as slow.
// go-plugin reads the plugin's certificate from the handshake and adds it to RootCAs.
func mutualTLS() (cfg *tls.Config, env string, err error) {
	cert, pem, err := launchcert.New()
	if err != nil {
		return nil, "", err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert},
		RootCAs:      x509.NewCertPool(), // only the plugin's
		MinVersion:   tls.VersionTLS13,
		ServerName:   launchcert.Name,
	}, clientCertificate + "=" + string(pem), nil
}
