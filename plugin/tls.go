package plugin

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
)

// errNoCertificate is the reason why a plugin cannot secure its connection.
var errNoCertificate = errors.New("there is no certificate in PEM in " + handshake.CertificateEnv)

// mutualTLS returns the plugin's TLS configuration, which accepts only the host with that
// certificate, and the plugin's own certificate in DER. go-plugin does the same for a host
// that asks for AutoMTLS, but with keys that are twenty times slower.
func mutualTLS(host string) (*tls.Config, []byte, error) {
	hosts := x509.NewCertPool()
	if !hosts.AppendCertsFromPEM([]byte(host)) {
		return nil, nil, errNoCertificate
	}
	cert, _, err := handshake.NewCertificate()
	if err != nil {
		return nil, nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    hosts,
		NextProtos:   []string{carry.Protocol}, // gRPC adds its own
		MinVersion:   tls.VersionTLS12,
	}, cert.Certificate[0], nil
}

// certificateField is the index of the plugin's certificate in the handshake.
const certificateField = 5

// printCertificate adds a certificate to the handshake line. go-plugin prints the line on
// stdout, without a certificate that it has not made itself. Call restore when go-plugin no
// longer serves; it restores stdout.
func printCertificate(der []byte) (restore func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, done := os.Stdout, make(chan struct{})
	os.Stdout = w
	go func() { // ends with restore
		defer close(done)
		printed := bufio.NewReader(r)
		line, _ := printed.ReadString('\n')
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(fields) > certificateField {
			fields[certificateField] = base64.RawStdEncoding.EncodeToString(der)
			fmt.Fprintln(stdout, strings.Join(fields, "|"))
		}
		_, _ = io.Copy(io.Discard, printed) // nothing else may be printed on stdout
	}()
	return func() {
		os.Stdout = stdout
		_ = w.Close()
		<-done
		_ = r.Close()
	}, nil
}
