package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// ParseTicket accepts tickets up to its limits and not above.
func TestTheBoundsOfATicket(t *testing.T) {
	good := secret{id: 1, password: make([]byte, conn.PasswordSize), timeout: maxTimeout, contact: time.Now()}
	for name, change := range map[string]func(*secret){
		"no id":              func(t *secret) { t.id = 0 },
		"a short password":   func(t *secret) { t.password = t.password[1:] },
		"no timeout":         func(t *secret) { t.timeout = 0 },
		"a negative timeout": func(t *secret) { t.timeout = -1 },
		"a timeout below ZooKeeper's shortest, of which go-zookeeper would make 0": func(t *secret) { t.timeout = minTimeout - 1 },
		"a timeout too long": func(t *secret) { t.timeout++ },
		"no contact":         func(t *secret) { t.contact = time.Time{} },
	} {
		bad := good
		change(&bad)
		if bad.valid() {
			t.Errorf("%s is valid", name)
		}
		if _, err := ParseTicket(Ticket{&bad}.Bytes(), bad.contact); !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !good.valid() || (*secret)(nil).valid() {
		t.Error("the limits of a ticket are wrong")
	}
	b := Ticket{&good}.Bytes()
	for _, bad := range [][]byte{nil, b[:len(b)-1], append(b[:len(b):len(b)], 0), append([]byte{9}, b[1:]...)} {
		if _, err := ParseTicket(bad, good.contact); !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

// A ticket shares no bytes with the encoding that it was parsed from, and prints as "session
// ticket".
func TestATicketOwnsItsBytes(t *testing.T) {
	good := secret{id: 1, password: []byte("0123456789abcdef"), timeout: time.Second, contact: time.Now()}
	b := Ticket{&good}.Bytes()
	ticket := must.Get(ParseTicket(b, good.contact))(t)
	clear(b)
	if !bytes.Equal(ticket.Bytes(), Ticket{&good}.Bytes()) {
		t.Error("the ticket has changed with the bytes that it was parsed from")
	}
	asJSON := must.Get(json.Marshal(ticket))(t)
	if text := fmt.Sprintf("%v %#x %v %s", ticket, ticket, []any{&ticket}, asJSON); strings.ReplaceAll(text, redacted, "") != `  [] ""` {
		t.Errorf("the ticket prints as %q", text)
	}
}

// Other users keep their permissions on a bare znode, except to write and to change its ACL.
func TestWhichUsersMayWriteToAPlace(t *testing.T) {
	i := identity{"word"}
	acl := i.acl([]jute.ACL{{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}, {Perms: zk.PermWrite | zk.PermAdmin, Scheme: "ip", ID: "10.0.0.1"}})
	want := []jute.ACL{{Perms: zk.PermRead | zk.PermCreate | zk.PermDelete, Scheme: "world", ID: "anyone"}, jute.ACL(zk.DigestACL(zk.PermAll, identityUser, "word")[0])}
	if !slices.Equal(acl, want) {
		t.Errorf("it is %v; want %v", acl, want)
	}
}

// Two sessions have the same identity exactly if they may change each other's znodes.
func TestWhichSessionsShareAnIdentity(t *testing.T) {
	creator := []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}
	readable := append(creator, recipes.ACL{Permissions: recipes.PermAll &^ recipes.PermDelete, Scheme: "world", ID: "anyone"})
	jane, other := &recipes.Digest{User: "jane", Password: "secret"}, &recipes.Digest{User: "jane", Password: "other"}
	byPassword, encrypted := &recipes.SASL{User: "jane", Password: "secret"}, &recipes.TLS{}
	published := newIdentity(recipes.SessionConfig{})
	if published.secret == "" {
		t.Error("a session of the default configuration has no identity")
	}
	for name, test := range map[string]struct {
		one, two recipes.SessionConfig
		same     bool
	}{
		"open, one names servers":          {recipes.SessionConfig{Servers: []string{"a"}}, recipes.SessionConfig{}, true},
		"open, one with a certificate":     {recipes.SessionConfig{TLS: &recipes.TLS{Key: []byte("k")}}, recipes.SessionConfig{}, true},
		"one user":                         {recipes.SessionConfig{Digest: jane, ACL: creator}, recipes.SessionConfig{Digest: jane}, true},
		"two passwords":                    {recipes.SessionConfig{Digest: jane, ACL: creator}, recipes.SessionConfig{Digest: other, ACL: creator}, false},
		"one SASL user":                    {recipes.SessionConfig{SASL: byPassword, TLS: encrypted, ACL: creator}, recipes.SessionConfig{SASL: byPassword, TLS: encrypted, ACL: readable}, true},
		"open, one with SASL":              {recipes.SessionConfig{SASL: byPassword}, recipes.SessionConfig{}, true},
		"SASL and no credentials":          {recipes.SessionConfig{SASL: byPassword, TLS: encrypted, ACL: creator}, recipes.SessionConfig{}, false},
		"a user and no credentials":        {recipes.SessionConfig{Digest: jane}, recipes.SessionConfig{}, false},
		"one certificate":                  {recipes.SessionConfig{TLS: &recipes.TLS{Key: []byte("k")}, ACL: creator}, recipes.SessionConfig{TLS: &recipes.TLS{Key: []byte("k")}, ACL: readable}, true},
		"two certificates":                 {recipes.SessionConfig{TLS: &recipes.TLS{Key: []byte("k")}, ACL: creator}, recipes.SessionConfig{TLS: &recipes.TLS{Key: []byte("l")}, ACL: creator}, false},
		"a certificate and no credentials": {recipes.SessionConfig{TLS: &recipes.TLS{Key: []byte("k")}, ACL: readable}, recipes.SessionConfig{}, false},
	} {
		if one, two := newIdentity(test.one), newIdentity(test.two); (one == two) != test.same || one.secret == "" || two.secret == "" {
			t.Errorf("%s: %v and %v", name, one, two)
		}
	}
	for _, acl := range [][]recipes.ACL{creator, readable, {{Permissions: recipes.PermAll, Scheme: "ip", ID: "10.0.0.1"}}} {
		if i := newIdentity(recipes.SessionConfig{ACL: acl}); i != (identity{}) {
			t.Errorf("a session without credentials has the identity %v for %v", i, acl)
		}
	}
}

// TestASASLPasswordIsNotSentAsADigest without TLS. The identity is a fast hash of user and
// password, without a salt. A listener that records it can guess passwords faster than from the
// exchange.
func TestASASLPasswordIsNotSentAsADigest(t *testing.T) {
	creator := []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}
	plain := recipes.SessionConfig{SASL: &recipes.SASL{Mechanism: "DIGEST-MD5", User: "jane", Password: "secret"}, ACL: creator}
	if i := newIdentity(plain); i.secret != "" || i.credentials() != "" {
		t.Errorf("the session would send %q", i.credentials())
	}
	encrypted := plain
	encrypted.TLS = &recipes.TLS{}
	if newIdentity(encrypted).secret == "" {
		t.Error("with TLS the session has no identity")
	}
	plain.Digest = &recipes.Digest{User: "joe", Password: "sent in the clear anyway"}
	if newIdentity(plain) != newIdentity(recipes.SessionConfig{Digest: plain.Digest}) {
		t.Error("a digest user is ignored")
	}
}
