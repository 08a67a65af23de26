package session

import (
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
	byPassword := &recipes.SASL{User: "jane", Password: "secret"}
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
		"one SASL user":                    {recipes.SessionConfig{SASL: byPassword, ACL: creator}, recipes.SessionConfig{SASL: byPassword, ACL: readable}, true},
		"open, one with SASL":              {recipes.SessionConfig{SASL: byPassword}, recipes.SessionConfig{}, true},
		"SASL and no credentials":          {recipes.SessionConfig{SASL: byPassword, ACL: creator}, recipes.SessionConfig{}, false},
		"two passwords":                    {recipes.SessionConfig{Digest: jane, ACL: creator}, recipes.SessionConfig{Digest: other, ACL: creator}, false},
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
