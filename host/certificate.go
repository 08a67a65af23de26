package host

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/zkrecipes/zkrecipes/internal/rpc/launchcert"
)

// clientCertificate is the variable by which a plugin gets the host's certificate.
const clientCertificate = "PLUGIN_CLIENT_CERT"

// mutualTLS returns the host's side of a connection that only this host and the plugin
// of this launch can make, and what the plugin's environment needs for that. It is what
// go-plugin's AutoMTLS does, which takes keys that are twenty times as slow. go-plugin
// adds the plugin's certificate to the roots, which it reads from the handshake.
func mutualTLS() (cfg *tls.Config, env string, err error) {
	cert, pem, err := launchcert.New()
	if err != nil {
		return nil, "", err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert},
		RootCAs:      x509.NewCertPool(), // none but the plugin's
		MinVersion:   tls.VersionTLS13,
		ServerName:   launchcert.Name,
	}, clientCertificate + "=" + string(pem), nil
}
