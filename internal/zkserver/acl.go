package zkserver

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// ACL is one entry of a znode's access list.
type ACL = jute.ACL

const (
	permRead   = 1
	permWrite  = 2
	permCreate = 4
	permDelete = 8
	permAdmin  = 16
)

var (
	openACL     = []ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}
	readOnlyACL = []ACL{{Perms: permRead, Scheme: "world", ID: "anyone"}}
)

// identity is one identity of a connection: an authenticated user, or the address.
type identity struct{ scheme, id string }

// allowed reports whether acl grants one of perms to one of the identities.
func allowed(acl []ACL, perms int32, who []identity) bool {
	for _, a := range acl {
		if a.Perms&perms == 0 {
			continue
		}
		if a.Scheme == "world" && a.ID == "anyone" {
			return true
		}
		if slices.ContainsFunc(who, func(w identity) bool { return w.matches(a) }) {
			return true
		}
	}
	return len(acl) == 0
}

func (who identity) matches(a ACL) bool {
	if a.Scheme != who.scheme {
		return false
	}
	switch a.Scheme {
	case "digest":
		return a.ID == who.id
	case "ip":
		return ipMatches(a.ID, who.id)
	}
	return false
}

// resolve checks the access list that a client sends, drops duplicates, and replaces the
// scheme "auth" by the client's authenticated identities. It returns false for a list that
// ZooKeeper answers with InvalidACL. 3.4 puts the authenticated identities at the end, and does not
// know address masks.
func resolve(list []ACL, who []identity, like Release) ([]ACL, bool) {
	if len(list) == 1 && list[0] == openACL[0] {
		return openACL, true // the usual list: all znodes share one slice
	}
	var out, last, seen []ACL
	for _, a := range list {
		if slices.Contains(seen, a) {
			continue
		}
		seen = append(seen, a)
		resolved, ok := resolveOne(a, who)
		switch {
		case !ok, like == Release34 && a.Scheme == "ip" && strings.Contains(a.ID, "/"):
			return nil, false
		case like == Release34 && a.Scheme == "auth":
			last = append(last, resolved...)
		default:
			out = append(out, resolved...)
		}
	}
	out = append(out, last...)
	return out, len(out) > 0
}

func resolveOne(a ACL, who []identity) ([]ACL, bool) {
	switch a.Scheme {
	case "world":
		return []ACL{a}, a.ID == "anyone"
	case "auth":
		var out []ACL
		for _, w := range who {
			// An address does not authenticate a client.
			if w.scheme != "ip" {
				out = append(out, ACL{Perms: a.Perms, Scheme: w.scheme, ID: w.id})
			}
		}
		return out, len(out) > 0
	case "digest":
		// user:hash. The user may be empty, and Java's split drops colons at the end.
		return []ACL{a}, strings.Count(strings.TrimRight(a.ID, ":"), ":") == 1
	case "ip":
		_, ok := parseIP(a.ID)
		return []ACL{a}, ok
	}
	return nil, false
}

// digestID converts "user:password" to the id that the digest scheme compares.
func digestID(secret []byte) string {
	user, _, _ := strings.Cut(string(secret), ":")
	sum := sha1.Sum(secret)
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// maskDigests hides password hashes from a reader without the admin permission.
func maskDigests(list []ACL) []ACL {
	out := slices.Clone(list)
	for i, a := range out {
		if a.Scheme == "digest" {
			user, _, found := strings.Cut(a.ID, ":")
			if found {
				out[i].ID = user + ":x"
			}
		}
	}
	return out
}

func parseIP(s string) (netip.Prefix, bool) {
	if !strings.Contains(s, "/") {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return netip.Prefix{}, false
		}
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	p, err := netip.ParsePrefix(s)
	return p, err == nil
}

func ipMatches(pattern, addr string) bool {
	p, ok := parseIP(pattern)
	a, err := netip.ParseAddr(addr)
	return ok && err == nil && p.Contains(a.Unmap())
}
