package session

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// identity is the digest user that may write to places. All sessions that may change the
// same znodes have the same one, so a line has one ACL, however many sessions contend.
// It guards against accidents: no other client writes to a contender by mistake.
// (The server's superuser may write too, and anybody where the server skips ACLs.)
//
// A session gives it on each connection before it first needs it.
type identity struct {
	secret string // "" if the session has no identity, and so no places
}

const (
	identityUser = "zkrecipes"
	// publishedSecret is the password of everybody's identity. Where anybody may delete
	// contenders, anybody can break a lock, and a secret would protect nothing.
	publishedSecret = "handoff"
)

// newIdentity returns the identity of a session with that configuration. A session that
// has credentials derives its secret from them: clients without them can neither write
// to a place nor delete it. A session that has none, and does not allow everybody to
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

func open(a zk.ACL) bool {
	return a.Scheme == "world" && a.ID == "anyone" && a.Perms&zk.PermDelete != 0
}

func derive(credentials string) string {
	sum := sha256.Sum256([]byte("zkrecipes handoff " + credentials))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// acl is the ACL of the session's znodes with writing left to the identity, and so the
// ACL. Others keep the rest: to read, to delete, and to create below the path of a line.
func (i identity) acl(others []zk.ACL) []zk.ACL {
	acl := make([]zk.ACL, 0, len(others)+1)
	for _, a := range others {
		if a.Perms &^= zk.PermWrite | zk.PermAdmin; a.Perms != 0 {
			acl = append(acl, a)
		}
	}
	return append(acl, zk.DigestACL(zk.PermAll, identityUser, i.secret)...)
}

// request gives the identity to a connection.
func (i identity) request() request {
	var e jute.Encoder
	e.Int32(0)
	e.String("digest")
	e.String(identityUser + ":" + i.secret)
	return request{op: opAuth, body: e.Bytes}
}

// Identified reports whether the session has an identity that servers take, as far as is
// known.
func (s *Session) Identified() bool { return s.identity.secret != "" && !s.wire.refused.Load() }

// exchangeIdentified is exchange on a connection to which the identity was given.
func (s *Session) exchangeIdentified(ctx context.Context, requests ...request) ([]reply, error) {
	b, err := s.sendIdentified(requests)
	if err != nil {
		return nil, err
	}
	return b.await(ctx, s)
}

// sendIdentified sends requests on a connection to which the identity was given.
// It is not given again once a server has refused it: that one ended the
// connection, and would end each one. What needs it is refused then, and places
// that were made before are deleted without it.
func (s *Session) sendIdentified(requests []request) (*batch, error) {
	c := s.dialer.connection()
	if c != nil && s.Identified() {
		if err := s.identify(c); err != nil {
			return nil, err
		}
	}
	return s.sendOn(c, requests)
}

// identify gives the identity to a connection, if it was not given, before it
// returns to anybody.
func (s *Session) identify(c *conn) error {
	c.identifying.Lock()
	defer c.identifying.Unlock()
	if c.identified {
		return nil
	}
	_, err := s.sendOn(c, []request{s.identity.request()})
	c.identified = err == nil
	return err
}
