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
// same znodes have the same one, so a line has one ACL, however many sessions contend.
// It guards against accidents: no other client writes to a contender by mistake.
// (The server's superuser may write too, and anybody where the server skips ACLs.)
//
// A session gives it on each connection before it first needs it.
type identity struct {
	secret string // "" if the session has no identity, and so no bare znodes
}

const (
	identityUser = "zkrecipes"
	// publishedSecret is the password of everybody's identity. Where anybody may delete
	// contenders, anybody can break a lock, and a secret would protect nothing.
	publishedSecret = "handoff"
)

// newIdentity returns the identity of a session with that configuration. A session that
// has credentials derives its secret from them: clients without them can neither write
// to a bare znode nor delete it. A session that has none, and does not allow everybody to
// delete what it creates, has no identity.
func newIdentity(cfg recipes.SessionConfig) identity {
	switch {
	case cfg.Digest != nil:
		return identity{derive(cfg.Digest.User + ":" + cfg.Digest.Password)}
	case slices.ContainsFunc(toACL(cfg.ACL), open):
		return identity{publishedSecret}
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

// acl is the ACL of the session's znodes with writing left to the identity, and so the
// ACL. Others keep the rest: to read, to delete, and to create below the path of a line.
func (i identity) acl(others []jute.ACL) []jute.ACL {
	acl := make([]jute.ACL, 0, len(others)+1)
	for _, a := range others {
		if a.Perms &^= int32(recipes.PermWrite | recipes.PermAdmin); a.Perms != 0 {
			acl = append(acl, a)
		}
	}
	digest := sha1.Sum([]byte(i.credentials())) // as ZooKeeper's digest scheme has it
	id := identityUser + ":" + base64.StdEncoding.EncodeToString(digest[:])
	return append(acl, jute.ACL{Perms: int32(recipes.PermAll), Scheme: "digest", ID: id})
}

// credentials are the user and the password, or "" if there is no identity.
func (i identity) credentials() string {
	if i.secret == "" {
		return ""
	}
	return identityUser + ":" + i.secret
}

// Identified reports whether the session has an identity that servers take, as far as is
// known.
func (s *Session) Identified() bool { return s.wire.Identified() }
