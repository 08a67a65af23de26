package recipes

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS configures encrypted connections. The contents are PEM, because a plugin may not have access to
// the files of its host.
type TLS struct {
	// CA contains the authorities that may sign the server's certificate. If it is empty,
	// those of the system may.
	CA []byte
	// Certificate and Key authenticate this client; both or neither.
	Certificate, Key []byte
	// CAFile, CertificateFile and KeyFile name files that have these contents. They are read again
	// for each connection, so that a session that runs for months uses a certificate that was
	// renewed. If a file cannot be read, the content above is used, if given. If new content cannot
	// be used, for example while only one of two files has been replaced, the session keeps using
	// the previous content and logs that. A plugin reads the files itself; give absolute names.
	CAFile, CertificateFile, KeyFile string
	// ServerName is the expected name in the server's certificate. "" is the dialled host.
	ServerName string
	// AnyName accepts a certificate with any names, if CA has signed it. Certificates made by
	// ZooKeeper's guide have a common name only, which no longer counts, and pods are dialled by
	// their addresses. If names are not checked, each owner of a certificate that CA has signed can
	// impersonate a server. So CA must be given, and should sign for this ensemble only.
	AnyName bool
}

// String hides the key.
func (t TLS) String() string { return fmt.Sprintf("tls(server name %q)", t.ServerName) }

// GoString hides the key.
func (t TLS) GoString() string { return "recipes.TLS{" + t.String() + "}" }

// ClientConfig reads the files, and returns the configuration for crypto/tls, or an ErrInvalid that
// says which part cannot be used.
func (t *TLS) ClientConfig() (*tls.Config, error) {
	ca, caErr := content("TLS.CA", t.CA, t.CAFile)
	certificate, certificateErr := content("TLS.Certificate", t.Certificate, t.CertificateFile)
	key, keyErr := content("TLS.Key", t.Key, t.KeyFile)
	if err := errors.Join(caErr, certificateErr, keyErr); err != nil {
		return nil, err
	}
	cfg := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%w: TLS.CA holds no PEM certificate", ErrInvalid)
		}
	}
	if len(certificate) > 0 || len(key) > 0 {
		cert, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			// The cause is not wrapped: it may quote key material.
			return nil, fmt.Errorf("%w: TLS.Certificate and TLS.Key are not a matching PEM pair", ErrInvalid)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	switch {
	case !t.AnyName:
	case t.ServerName != "":
		return nil, fmt.Errorf("%w: TLS.AnyName and TLS.ServerName exclude each other", ErrInvalid)
	case cfg.RootCAs == nil:
		return nil, fmt.Errorf("%w: TLS.AnyName needs TLS.CA: otherwise every owner of a public certificate could play a server", ErrInvalid)
	default:
		cfg.InsecureSkipVerify = true // verifyChain does the rest
		cfg.VerifyConnection = verifyChain(cfg.RootCAs)
	}
	return cfg, nil
}

// verifyChain checks what crypto/tls checks by default, except the name.
func verifyChain(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, cert := range s.PeerCertificates[1:] {
			opts.Intermediates.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(opts)
		return err
	}
}

// loaded returns a copy that has the contents of those files that can be read here.
func (t *TLS) loaded() *TLS {
	out := *t
	for into, file := range map[*[]byte]string{&out.CA: t.CAFile, &out.Certificate: t.CertificateFile, &out.Key: t.KeyFile} {
		if len(*into) == 0 && file != "" {
			*into, _ = os.ReadFile(file) // ClientConfig has reported an error
		}
	}
	return &out
}

// content returns the PEM of the file, or given if the file cannot be read.
func content(what string, given []byte, file string) ([]byte, error) {
	if file != "" {
		read, err := os.ReadFile(file)
		switch {
		case err == nil:
			given, what = read, what+" ("+file+")"
		case len(given) == 0:
			return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, what, err)
		}
	}
	switch {
	case bytes.HasPrefix(given, []byte{0xfe, 0xed, 0xfe, 0xed}):
		return nil, fmt.Errorf("%w: %s is a Java keystore (JKS), not PEM: keytool -importkeystore -srckeystore FILE -destkeystore FILE.p12 -deststoretype PKCS12, then as for PKCS12", ErrInvalid, what)
	case isPKCS12(given):
		return nil, fmt.Errorf("%w: %s is a PKCS12 keystore, not PEM: openssl pkcs12 -in FILE.p12 -nokeys -out certificate.pem, and -nocerts -nodes -out key.pem", ErrInvalid, what)
	}
	return given, nil
}

// isPKCS12 reports whether the content begins as a PFX: a DER sequence with the version 3.
func isPKCS12(content []byte) bool {
	if len(content) < 5 || content[0] != 0x30 {
		return false
	}
	body := 2
	if content[1] > 0x80 {
		body += int(content[1] & 0x7f)
	}
	return len(content) >= body+3 && bytes.Equal(content[body:body+3], []byte{2, 1, 3})
}
