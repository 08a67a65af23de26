package recipes_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestWhatCannotBeUsedForTLS(t *testing.T) {
	jks, p12 := []byte("\xfe\xed\xfe\xed\x00\x00\x00\x02"), []byte("\x30\x82\x0a\x00\x02\x01\x03\x30")
	file := filepath.Join(t.TempDir(), "client.p12")
	must.Do(t, os.WriteFile(file, p12, 0o600))
	for _, c := range []struct {
		tls recipes.TLS
		why string
	}{
		{recipes.TLS{CA: []byte("none")}, "TLS.CA holds no PEM certificate"},
		{recipes.TLS{CA: jks}, "TLS.CA is a Java keystore (JKS), not PEM: keytool"},
		{recipes.TLS{Certificate: p12, Key: p12}, "TLS.Certificate is a PKCS12 keystore, not PEM: openssl pkcs12"},
		{recipes.TLS{Certificate: []byte("\x30\x03\x02\x01\x03")}, "PKCS12"},
		{recipes.TLS{CertificateFile: file}, "TLS.Certificate (" + file + ") is a PKCS12 keystore"},
		{recipes.TLS{CAFile: file + "none"}, "TLS.CA: open " + file + "none"},
		{recipes.TLS{Certificate: []byte("x")}, "not a matching PEM pair"},
		{recipes.TLS{AnyName: true}, "AnyName needs TLS.CA"},
		{recipes.TLS{AnyName: true, ServerName: "zk"}, "exclude each other"},
	} {
		if _, err := c.tls.ClientConfig(); !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v; want ErrInvalid with %q", c.tls, err, c.why)
		}
	}
}
