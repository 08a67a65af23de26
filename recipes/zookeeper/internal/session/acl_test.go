package session

import (
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
)

// What a server has made of "auth" takes its place, without the session's identity.
func TestWhatTheServerMadeOfAuth(t *testing.T) {
	const identity = "zkrecipes-me"
	jane, joe, me := zk.ACL{Perms: zk.PermAll, Scheme: "digest", ID: "jane:hash"}, zk.ACL{Perms: zk.PermAll, Scheme: "ip", ID: "10.0.0.1"}, zk.ACL{Perms: zk.PermAll, Scheme: "digest", ID: identity + ":hash"}
	anyone := zk.ACL{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}
	auth := zk.ACL{Perms: zk.PermAll, Scheme: "auth"}
	reading := zk.ACL{Perms: zk.PermRead, Scheme: "auth"}
	for name, test := range map[string]struct {
		acl, list, want []zk.ACL
		ok              bool
	}{
		"one creator":        {[]zk.ACL{auth}, []zk.ACL{jane, me}, []zk.ACL{jane}, true},
		"two creators":       {[]zk.ACL{auth}, []zk.ACL{jane, joe, me}, []zk.ACL{jane, joe}, true},
		"beside another":     {[]zk.ACL{anyone, auth}, []zk.ACL{anyone, jane, me}, []zk.ACL{anyone, jane}, true},
		"before another":     {[]zk.ACL{auth, anyone}, []zk.ACL{jane, anyone, me}, []zk.ACL{jane, anyone}, true},
		"twice":              {[]zk.ACL{auth, auth}, []zk.ACL{jane, me}, []zk.ACL{jane}, true},
		"twice, differently": {[]zk.ACL{auth, reading}, []zk.ACL{jane, me}, []zk.ACL{jane, {Perms: zk.PermRead, Scheme: "digest", ID: "jane:hash"}}, true},
		"nobody else":        {[]zk.ACL{auth}, []zk.ACL{me}, nil, false},
		"masked":             {[]zk.ACL{auth}, []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "jane:x"}, me}, nil, false},
		"explicit, masked":   {[]zk.ACL{auth, {Perms: zk.PermAll, Scheme: "digest", ID: "joe:x"}}, []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "joe:x"}, jane, me}, []zk.ACL{jane, {Perms: zk.PermAll, Scheme: "digest", ID: "joe:x"}}, true},
		"a similar name":     {[]zk.ACL{auth}, []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: identity + "2:hash"}, me}, []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: identity + "2:hash"}}, true},
		"another scheme":     {[]zk.ACL{auth}, []zk.ACL{{Perms: zk.PermAll, Scheme: "sasl", ID: identity + ":hash"}, me}, []zk.ACL{{Perms: zk.PermAll, Scheme: "sasl", ID: identity + ":hash"}}, true},
		"same name, another": {[]zk.ACL{auth, anyone}, []zk.ACL{anyone, {Perms: zk.PermAll, Scheme: "ip", ID: "anyone"}, me}, []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: "anyone"}, anyone}, true},
	} {
		got, ok := replaceAuth(test.acl, test.list, identity)
		if ok != test.ok || ok && !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, ok, test.want, test.ok)
		}
	}
}

// Others keep what they may do to a place, but for writing and for its ACL.
func TestWhoMayWriteToAPlace(t *testing.T) {
	var i identity
	acl := i.acl([]zk.ACL{{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}, {Perms: zk.PermWrite | zk.PermAdmin, Scheme: "ip", ID: "10.0.0.1"}})
	want := append([]zk.ACL{{Perms: zk.PermRead | zk.PermCreate | zk.PermDelete, Scheme: "world", ID: "anyone"}}, zk.DigestACL(zk.PermAll, i.user, i.secret)...)
	if !slices.Equal(acl, want) {
		t.Errorf("it is %v; want %v", acl, want)
	}
}
