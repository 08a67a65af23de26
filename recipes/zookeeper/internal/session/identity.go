package session

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// identity is the digest user that may write to bare znodes. All sessions that may change the
// same znodes share it, so a wait queue has one ACL, however many sessions contend. It prevents
// accidents: no other client writes to a contender's znode by mistake. (The server's superuser
// may write too, and every client if the server skips ACLs.)
//
// A session gives the identity to each connection before the first request that needs it.
type identity struct {
	secret string // "" if the session has no identity, and therefore no bare znodes
}

const (
	identityUser = "zkrecipes"
	// publishedSecret is the shared password if every client may delete contenders. Every
	// client can break such a lock anyway, so a secret would protect nothing.
	publishedSecret = "handoff"
)

// newIdentity returns the identity of a session with that configuration. A session with
// credentials derives its secret from them, so clients without the credentials can neither
// write to its bare znodes nor delete them. A session without credentials has no identity,
// unless it allows every client to delete its znodes.
//
// The digest scheme sends the secret. So a password of SASL is used only with TLS: the exchange
// of DIGEST-MD5 does not send it, and the secret would let a listener guess it faster.
func newIdentity(cfg recipes.SessionConfig) identity {
	switch {
	case cfg.Digest != nil:
		return identity{derive(cfg.Digest.User + ":" + cfg.Digest.Password)}
	case slices.ContainsFunc(toACL(cfg.ACL), open):
		return identity{publishedSecret}
	case cfg.SASL != nil && cfg.SASL.Password != "" && cfg.TLS != nil:
		return identity{derive(cfg.SASL.User + ":" + cfg.SASL.Password)}
	case cfg.TLS != nil && len(cfg.TLS.Key) > 0:
		return identity{derive(string(cfg.TLS.Key))}
	}
	return identity{}
}

func open(a jute.ACL) bool {
	return a.Scheme == "world" && a.Perms&int32(recipes.PermDelete) != 0
}

func derive(credentials string) string {
	sum := sha256.Sum256([]byte("zkrecipes handoff " + credentials))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// acl returns the ACL of a bare znode: it leaves writing, and changing the ACL, to the
// identity. Other users keep the rest: they may read, delete, and create children of a wait
// queue's path.
func (i identity) acl(others []jute.ACL) []jute.ACL {
	acl := make([]jute.ACL, 0, len(others)+1)
	for _, a := range others {
		if a.Perms &^= int32(recipes.PermWrite | recipes.PermAdmin); a.Perms != 0 {
			acl = append(acl, a)
		}
	}
	digest := sha1.Sum([]byte(i.credentials())) // as in ZooKeeper's digest scheme
	id := identityUser + ":" + base64.StdEncoding.EncodeToString(digest[:])
	return append(acl, jute.ACL{Perms: int32(recipes.PermAll), Scheme: "digest", ID: id})
}

// credentials returns the user and password, or "" if there is no identity.
func (i identity) credentials() string {
	if i.secret == "" {
		return ""
	}
	return identityUser + ":" + i.secret
}

func toACL(acl []recipes.ACL) []jute.ACL {
	if len(acl) == 0 {
		acl = []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "world", ID: "anyone"}}
	}
	out := make([]jute.ACL, len(acl))
	for i, a := range acl {
		out[i] = jute.ACL{Perms: int32(a.Permissions), Scheme: a.Scheme, ID: a.ID}
	}
	return out
}
