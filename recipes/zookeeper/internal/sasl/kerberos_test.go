package sasl

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func aes() types.EncryptionKey {
	return types.EncryptionKey{KeyType: etypeID.AES128_CTS_HMAC_SHA1_96, KeyValue: []byte("0123456789abcdef")}
}

// offer is a server's offer of security layers, signed with the key.
func offer(t *testing.T, key types.EncryptionKey, layers byte) []byte {
	t.Helper()
	w := gssapi.WrapToken{Flags: 1, EC: 12, Payload: []byte{layers, 0, 0, 0}}
	must.Do(t, w.SetCheckSum(key, keyusage.GSSAPI_ACCEPTOR_SEAL))
	return must.Get(w.Marshal())(t)
}

func TestOffersOfSecurityLayers(t *testing.T) {
	x := &exchange{key: aes()}
	choice, err := x.Next(offer(t, aes(), 7))
	if err != nil || choice[16] != 1 {
		t.Errorf("%x, %v; want no layer", choice, err)
	}
	if last, err := x.Next(nil); last != nil || err != nil {
		t.Errorf("%x, %v; want the end", last, err)
	}
	other := aes()
	other.KeyValue = []byte("another key.....")
	for name, token := range map[string][]byte{
		"other key": offer(t, other, 1), "layers only": offer(t, aes(), 6), "short": {5, 4},
	} {
		if _, err := (&exchange{key: aes()}).Next(token); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := (&exchange{key: aes()}).Next(nil); !errors.Is(err, ErrNotOffered) {
		t.Error(err)
	}
	if _, err := newGSSAPI(ticket{key: types.EncryptionKey{KeyType: etypeID.RC4_HMAC}}, nil); !errors.As(err, new(refusal)) {
		t.Error(err)
	}
}

func TestATicketIsUsedUntilAMinuteBeforeItsEnd(t *testing.T) {
	f := &fetch{done: make(chan struct{})}
	if f.stale() {
		t.Error("a request without an answer is repeated")
	}
	close(f.done)
	for left, stale := range map[time.Duration]bool{2 * margin: false, margin / 2: true, -margin: true} {
		f.ticket.end = time.Now().Add(left)
		if f.stale() != stale {
			t.Errorf("with %v left: stale is %t", left, !stale)
		}
	}
}

// gokrb5 panics on some of these files.
func TestFilesThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	keys := keytab.New()
	must.Do(t, keys.AddEntry("app", "R", "s3cret", time.Now(), 1, aes().KeyType))
	good := write("krb5.conf", "[libdefaults]\n default_realm = R\n")
	for name, cfg := range map[string]recipes.SASL{
		"no configuration": {Krb5Conf: dir + "/missing", Keytab: good},
		"no keytab":        {Krb5Conf: good, Keytab: dir + "/missing"},
		"bad keytab":       {Krb5Conf: good, Keytab: write("keytab", "\x05\x02\x00\x00\x00\x40s3cret")},
		"no cache":         {Krb5Conf: good, CCache: dir + "/missing"},
		"empty cache":      {Krb5Conf: good, CCache: write("empty", "")},
		"bad cache":        {Krb5Conf: good, CCache: write("cache", "\x05\x04\x00\x0c\x00\x01\x00\x08")},
		"no kdc":           {Krb5Conf: good, Keytab: write("none", string(must.Get(keys.Marshal())(t)))},
	} {
		var refused refusal
		cfg.User = "app"
		_, err := request(cfg, "zookeeper/h")
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
		t.Log(name, err)
	}
}

// gokrb5 refuses these lines, which are in the files of Fedora and Debian.
func TestLinesOfKrb5ConfThatAreIgnored(t *testing.T) {
	file := filepath.Join(t.TempDir(), "krb5.conf")
	must.Do(t, os.WriteFile(file, []byte(`includedir /etc/krb5.conf.d/
[libdefaults]
 default_realm = R
 dns_canonicalize_hostname = fallback
 include /etc/more
[realms]
	includedir /etc/realms
 R = {
  kdc = 127.0.0.1:1
 }
`), 0o600))
	keys := keytab.New()
	must.Do(t, keys.AddEntry("app", "R", "s3cret", time.Now(), 1, aes().KeyType))
	table := filepath.Join(filepath.Dir(file), "keytab")
	must.Do(t, os.WriteFile(table, must.Get(keys.Marshal())(t), 0o600))
	if _, err := request(recipes.SASL{User: "app", Krb5Conf: file, Keytab: table}, "zookeeper/h"); err == nil || errors.As(err, new(refusal)) {
		t.Errorf("%v; want a KDC that is not reached", err)
	}
}

// After a refusal, the next connection requests a ticket again. A connection that starts before
// the answer waits for it, and sends no request.
func TestOneRequestForATicketIsUnderWay(t *testing.T) {
	c := New(&recipes.SASL{Mechanism: "GSSAPI", Krb5Conf: filepath.Join(t.TempDir(), "missing")})
	for range 2 {
		refused := c.tickets["zookeeper/h"]
		_, err := c.Begin(t.Context(), "H:1")
		if !errors.Is(err, recipes.ErrAuthFailed) || !errors.Is(err, os.ErrNotExist) || c.tickets["zookeeper/h"] == refused {
			t.Error(err)
		}
	}
	unanswered := &fetch{done: make(chan struct{})}
	c.tickets["zookeeper/h"] = unanswered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Begin(ctx, "h:1"); !errors.Is(err, context.Canceled) || c.tickets["zookeeper/h"] != unanswered {
		t.Error(err)
	}
}

// The server refuses a client whose authenticator has no checksum, or one with other flags.
func TestTheFirstTokenHasTheChecksumOfTheRFC(t *testing.T) {
	service := types.NewPrincipalName(nametype.KRB_NT_SRV_HST, "zookeeper/localhost")
	x := must.Get(newGSSAPI(ticket{
		Ticket: messages.Ticket{TktVNO: 5, Realm: "R", SName: service}, key: aes(), realm: "R", user: types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, "u"),
	}, nil))(t)
	_, request, found := bytes.Cut(must.Get(x.Next(nil))(t), kerberos5)
	var got messages.APReq
	must.Do(t, errors.Join(got.Unmarshal(request), got.DecryptAuthenticator(aes())))
	sum := slices.Concat([]byte{16}, make([]byte, 19), []byte{gssapi.ContextFlagInteg, 0, 0, 0})
	if c := got.Authenticator.Cksum; !found || c.CksumType != chksumtype.GSSAPI || !bytes.Equal(c.Checksum, sum) {
		t.Errorf("a checksum of type %#x: %x", c.CksumType, c.Checksum)
	}
}
