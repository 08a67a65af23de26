package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// logged collects the output of a host's logger.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const password = "correct-horse-battery"

// session opens a session with secrets through a plugin whose host logs at that level,
// provokes errors, and returns the log and all errors.
func session(t *testing.T, level hclog.Level, certificate, key []byte) (log, failures string) {
	t.Helper()
	s := must.Get(zkserver.Listen(zkserver.Config{MinSessionTimeout: time.Second}))(t)
	defer s.Close()
	var l logged
	p := must.Get(host.Launch(t.Context(), host.Config{
		Path: os.Args[0], Env: []string{mainEnv + "=1"},
		Logger:       hclog.New(&hclog.LoggerOptions{Name: "application", Level: level, Output: &l}),
		StartTimeout: watchdog.Patience,
	}))(t)
	cfg := recipes.SessionConfig{
		Servers: []string{s.Addr()}, SessionTimeout: time.Second,
		Digest: &recipes.Digest{User: "bob", Password: password},
	}
	opened := must.Get(p.Open(t.Context(), cfg))(t)
	var said []string
	for name, change := range map[string]func(*recipes.SessionConfig){
		"no certificate": func(c *recipes.SessionConfig) { c.TLS = &recipes.TLS{Certificate: key, Key: key} },
		"no TLS": func(c *recipes.SessionConfig) {
			c.TLS, c.ConnectTimeout = &recipes.TLS{Certificate: certificate, Key: key}, 100*time.Millisecond
		},
		"password in an ACL": func(c *recipes.SessionConfig) {
			c.ACL = []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "digest", ID: "bob:" + password}}
		},
		"SASL": func(c *recipes.SessionConfig) {
			c.SASL = &recipes.SASL{Mechanism: "DIGEST-MD5", User: "bob", Password: password}
		},
		"long password": func(c *recipes.SessionConfig) {
			c.Digest = &recipes.Digest{User: "bob", Password: strings.Repeat(password, 1<<16)}
		},
	} {
		c := cfg
		change(&c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the subject of the test: the session cannot be opened
		other, err := p.Open(ctx, c)
		if err == nil { // only the server notices some of them
			err = other.Close(t.Context())
		}
		cancel()
		if err != nil {
			said = append(said, name+": "+err.Error())
		}
	}
	s.Close() // the session is lost
	select {
	case <-opened.Done():
	case <-time.After(watchdog.Patience):
		t.Fatal("not lost")
	}
	said = append(said, opened.Err().Error())
	if err := p.Close(t.Context()); err != nil {
		said = append(said, err.Error())
	}
	return l.String(), strings.Join(said, "\n")
}

// Neither the log at its most detailed level nor an error contains a secret.
func TestSecretsAreNeverLogged(t *testing.T) {
	t.Parallel()
	certificate, key := pair(t)
	log, failures := session(t, hclog.Trace, certificate, key)
	for _, module := range []string{"@module=zkrecipes-plugin", "@module=zkrecipes-plugin.session", "@module=zkrecipes-plugin.zookeeper"} {
		if !strings.Contains(log, module+" ") && !strings.Contains(log, module+"\n") {
			t.Errorf("nothing of %s in the log:\n%s", module, log)
		}
	}
	body := strings.Split(string(key), "\n")[1]
	for _, secret := range []string{password, base64.StdEncoding.EncodeToString([]byte(password)), body[:20]} {
		if strings.Contains(log, secret) {
			t.Errorf("%q is in the log:\n%s", secret, log)
		}
		if strings.Contains(failures, secret) {
			t.Errorf("%q is in an error: %s", secret, failures)
		}
	}
	if !strings.Contains(failures, "no certificate") {
		t.Errorf("the test does not fail where it should: %s", failures)
	}
}

// pair is a self-signed certificate and its key.
func pair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert := must.Get(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))(t)
	der := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// The plugin does not write what the host would discard.
func TestLevelIsTheHosts(t *testing.T) {
	t.Parallel()
	log, _ := session(t, hclog.Warn, nil, nil)
	if strings.Contains(log, "[DEBUG]") || strings.Contains(log, "session opened") {
		t.Errorf("at the level warn: %s", log)
	}
}
