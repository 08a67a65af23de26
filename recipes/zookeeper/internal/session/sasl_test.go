package session_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jcmturner/gokrb5/v8/credentials"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

const digestLogin = `org.apache.zookeeper.server.auth.DigestLoginModule required user_jane="pässwörd 7" user_joe="日本"`

func jane() *recipes.SASL {
	return &recipes.SASL{Mechanism: "DIGEST-MD5", User: "jane", Password: "pässwörd 7"}
}

// localhost returns the servers' addresses with the name in their principal.
func localhost(e *ensemble.Ensemble) []string {
	return []string{strings.Replace(e.Connect(), "127.0.0.1", "localhost", 1)}
}

// counter counts dials, and can drop the latest connection.
type counter struct {
	dials  atomic.Int32
	latest atomic.Pointer[net.Conn]
	wrap   func(net.Conn) net.Conn
}

func (d *counter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.dials.Add(1)
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil && d.wrap != nil {
		c = d.wrap(c)
	}
	d.latest.Store(&c)
	return c, err
}

// cut drops the session's connection and waits until it is back.
func (d *counter) cut(t *testing.T, s *session.Session) {
	t.Helper()
	gone := must.Get(s.Connected(zktest.Bounded(t)))(t)
	(*d.latest.Load()).Close()
	<-gone
	must.Get(s.Connected(zktest.Bounded(t)))(t)
}

// refusedOnce requires that a session cannot be opened, with an ErrAuthFailed that contains the
// words, and that at most one connection is made.
func refusedOnce(t *testing.T, cfg recipes.SessionConfig, words ...string) {
	t.Helper()
	d := new(counter)
	log := new(strings.Builder)
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: log})
	s, err := session.Open(zktest.Bounded(t), cfg, d.dial)
	if err == nil {
		closeNow(s)
	}
	if !errors.Is(err, recipes.ErrAuthFailed) || errors.Is(err, recipes.ErrUnavailable) {
		t.Fatalf("%v; want ErrAuthFailed", err)
	}
	for _, word := range append(words, "SASL "+cfg.SASL.Mechanism) {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not contain %q", err, word)
		}
	}
	if d.dials.Load() > 1 {
		t.Errorf("%d connections for one refusal", d.dials.Load())
	}
	if secret := cfg.SASL.Password; secret != "" && strings.Contains(err.Error()+log.String(), secret) {
		t.Errorf("the password is in the error or the log: %v\n%s", err, log)
	}
}

// livesWithSASL requires that a session survives a reconnect and a move to another process with
// its user.
func livesWithSASL(t *testing.T, cfg recipes.SessionConfig, user string) {
	t.Helper()
	d := new(counter)
	cfg.SessionTimeout = 20 * time.Second
	s := must.Get(session.Open(zktest.Bounded(t), cfg, d.dial))(t)
	cfg.ACL = []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "sasl", ID: user}}
	owner := open(t, cfg)
	path := must.Get(owner.CreateProtected(zktest.Bounded(t), "/private", "lock-", nil))(t)
	d.cut(t, s)
	if _, err := s.Get(zktest.Bounded(t), path); err != nil {
		t.Errorf("after a reconnect: %v", err)
	}
	if counts := s.Counters(); counts.ByKind["sasl"] < 4 || counts.Reconnects != 1 {
		t.Errorf("counted %v", counts)
	}
	ticket := must.Get(s.LetGo(zktest.Bounded(t)))(t)
	resumed := must.Get(session.Resume(zktest.Bounded(t), cfg, nil, ticket))(t)
	defer closeNow(resumed)
	if _, err := resumed.Get(zktest.Bounded(t), path); err != nil {
		t.Errorf("resumed: %v", err)
	}
}

// A server that does not offer SASL is not used without it.
func TestAServerWithoutSASLIsRefused(t *testing.T) {
	cfg := to(embedded(t))
	cfg.SASL = jane()
	refusedOnce(t, cfg, "does not offer SASL")
}

func TestDigestMD5(t *testing.T) {
	e := ensembletest.StartSASL(t, digestLogin)
	cfg := recipes.SessionConfig{Servers: e.Addrs(), SASL: jane()}
	livesWithSASL(t, cfg, "jane")
	cfg.SASL = &recipes.SASL{Mechanism: "DIGEST-MD5", User: "joe", Password: "日本"}
	must.Get(open(t, cfg).Get(zktest.Bounded(t), "/"))(t)

	cfg.SASL = jane()
	cfg.SASL.Password = "wr0ng"
	refusedOnce(t, cfg, e.Addrs()[0], "refused the credentials")
	t.Run("other mechanism", func(t *testing.T) {
		kdc := ensembletest.StartKDC(t)
		kdc.Keytab(t, "zookeeper/localhost")
		cfg := recipes.SessionConfig{Servers: localhost(e), SASL: &recipes.SASL{
			Mechanism: "GSSAPI", User: "app", Keytab: kdc.Keytab(t, "app"), Krb5Conf: kdc.Conf,
		}}
		refusedOnce(t, cfg, "has another mechanism")
	})
}

func TestKerberos(t *testing.T) {
	kdc := ensembletest.StartKDC(t)
	keytab := kdc.Keytab(t, "app")
	e := ensembletest.StartSASL(t, `com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="`+
		kdc.Keytab(t, "zookeeper/localhost")+`" principal="zookeeper/localhost@`+ensembletest.Realm+`"`,
		"java.security.krb5.conf", kdc.Conf)
	byKeytab := recipes.SASL{Mechanism: "GSSAPI", User: "app", Keytab: keytab, Krb5Conf: kdc.Conf}
	cache := filepath.Join(t.TempDir(), "cache")
	kdc.Run(t, "kinit", "-k", "-t", keytab, "-c", cache, "app")
	byCache := recipes.SASL{Mechanism: "GSSAPI", CCache: cache, Krb5Conf: kdc.Conf}
	with := func(user recipes.SASL, change func(*recipes.SASL)) recipes.SessionConfig {
		if change != nil {
			change(&user)
		}
		return recipes.SessionConfig{Servers: localhost(e), SASL: &user}
	}
	t.Run("cache", func(t *testing.T) {
		livesWithSASL(t, with(byCache, nil), "app@"+ensembletest.Realm)
	})
	t.Run("service", func(t *testing.T) {
		cfg := with(byKeytab, func(u *recipes.SASL) { u.Service = "zookeeper/localhost" })
		cfg.Servers = e.Addrs() // whose IP address is no principal
		must.Get(open(t, cfg).Get(zktest.Bounded(t), "/"))(t)
	})
	t.Run("unknown service", func(t *testing.T) {
		refusedOnce(t, with(byKeytab, func(u *recipes.SASL) { u.Service = "kafka" }), "kafka/localhost", "KDC_ERR_S_PRINCIPAL_UNKNOWN")
	})
	t.Run("unknown user", func(t *testing.T) {
		refusedOnce(t, with(byKeytab, func(u *recipes.SASL) { u.User = "eve" }), "eve@"+ensembletest.Realm, keytab)
	})
	t.Run("old key", func(t *testing.T) {
		old := kdc.Keytab(t, "old")
		kdc.Run(t, "kadmin.local", "-q", "cpw -randkey old")
		refusedOnce(t, with(byKeytab, func(u *recipes.SASL) { u.User, u.Keytab = "old", old }), "KDC_ERR_PREAUTH_FAILED", old)
	})
	t.Run("expired ticket", func(t *testing.T) {
		content := must.Get(os.ReadFile(byCache.CCache))(t)
		tickets := must.Get(credentials.LoadCCache(byCache.CCache))(t)
		var end, past [4]byte
		for _, entry := range tickets.GetEntries() {
			binary.BigEndian.PutUint32(end[:], uint32(entry.EndTime.Unix()))
			binary.BigEndian.PutUint32(past[:], uint32(time.Now().Unix()-1))
			content = bytes.ReplaceAll(content, end[:], past[:])
		}
		expired := filepath.Join(t.TempDir(), "expired")
		must.Do(t, os.WriteFile(expired, content, 0o600))
		refusedOnce(t, with(byCache, func(u *recipes.SASL) { u.CCache = expired }), "localhost", expired, "expired at", "kinit")
	})
	t.Run("keytab, and a reconnect without the KDC", func(t *testing.T) {
		d := new(counter)
		s := must.Get(session.Open(zktest.Bounded(t), with(byKeytab, nil), d.dial))(t)
		defer closeNow(s)
		kdc.Stop()
		d.cut(t, s)
		must.Get(s.Get(zktest.Bounded(t), "/"))(t)
	})
	t.Run("no KDC", func(t *testing.T) { // the KDC is stopped
		d := new(counter)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // subject: the session cannot be opened
		defer cancel()
		_, err := session.Open(ctx, with(byKeytab, nil), d.dial)
		if !errors.Is(err, recipes.ErrUnavailable) || !strings.Contains(err.Error(), "SASL GSSAPI with localhost") || d.dials.Load() > 0 {
			t.Errorf("%v, %d connections", err, d.dials.Load())
		}
	})
}

// With allowSaslFailedClients, a server answers a wrong password with success, but without a proof.
// Without the provider of the scheme "sasl", it accepts the user, and refuses ACLs with it.
func TestAServerThatServesFailedClients(t *testing.T) {
	cfg := ensembletest.Quick(1)
	jaas := filepath.Join(t.TempDir(), "jaas.conf")
	must.Do(t, os.WriteFile(jaas, []byte("Server {\n"+digestLogin+";\n};\n"), 0o600))
	cfg.SystemProperties["java.security.auth.login.config"] = jaas
	cfg.SystemProperties["zookeeper.allowSaslFailedClients"] = "true"
	e := ensembletest.Start(t, cfg)
	creator := recipes.SessionConfig{Servers: e.Addrs(), SASL: jane(), ACL: []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}}
	if _, err := open(t, creator).CreateProtected(zktest.Bounded(t), "/private", "lock-", nil); !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("without the provider: %v", err)
	}
	wrong := jane()
	wrong.Password = "wr0ng"
	refusedOnce(t, recipes.SessionConfig{Servers: e.Addrs(), SASL: wrong}, "did not prove")
}

func TestServersWithoutSASL(t *testing.T) {
	for _, server := range []string{embedded(t).Addr(), ensembletest.Shared(t).Addrs()[0]} {
		refusedOnce(t, recipes.SessionConfig{Servers: []string{server}, SASL: jane()}, server, "does not offer SASL")
	}
}

// A server that resumes the session, and whose answer to SASL does not arrive, keeps the session
// alive at the leader. Such a connection does not count as a contact, so the session must end at
// its deadline.
func TestAHandshakeWithoutSASLIsNoContact(t *testing.T) {
	e := ensembletest.StartSASL(t, digestLogin)
	for timeout := time.Second; timeout < time.Minute; timeout *= 2 { // a busy machine needs more
		var silent atomic.Bool
		d := &counter{wrap: func(c net.Conn) net.Conn { return &saslless{Conn: c, silent: &silent} }}
		cfg := recipes.SessionConfig{Servers: e.Addrs(), SASL: jane(), SessionTimeout: timeout}
		s := must.Get(session.Open(zktest.Bounded(t), cfg, d.dial))(t)
		defer closeNow(s)
		silent.Store(true)
		(*d.latest.Load()).Close()
		if err := awaitLost(t, s); !errors.Is(err, recipes.ErrDeadline) {
			t.Errorf("lost with %v", err)
		}
		if d.dials.Load() >= 3 {
			return
		}
	}
	t.Error("three connections: the case was not met")
}

// saslless closes the connection instead of sending a SASL token.
type saslless struct {
	net.Conn
	silent *atomic.Bool
}

func (c *saslless) Write(frame []byte) (int, error) {
	const sasl = 102
	if c.silent.Load() && len(frame) >= 12 && binary.BigEndian.Uint32(frame[8:]) == sasl {
		c.Close()
	}
	return c.Conn.Write(frame)
}

// If a server requires SASL, its first answer says so.
func TestServerThatRequiresSASL(t *testing.T) {
	e := ensembletest.StartSASL(t, "")
	s, err := session.Open(zktest.Bounded(t), recipes.SessionConfig{Servers: e.Addrs()}, nil)
	if err == nil {
		_, err = s.Get(zktest.Bounded(t), "/")
		closeNow(s)
	}
	if !errors.Is(err, recipes.ErrSASLRequired) {
		t.Errorf("got %v", err)
	}
}
