package session

import (
	"context"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// authScheme is the scheme that a server replaces by all that the connection has
// proved.
const authScheme = "auth"

// newACL is the ACL of znodes that the session creates.
//
// A server would replace "auth" by the session's identity too, on a connection to
// which that was given. Only a place needs the identity, and in the ACL of a znode that
// outlives the session it is an entry that never matches again, another one for each
// session. So the first place is created before the identity is given. What its ACL
// says of the creator then takes the place of "auth" in all that is created later. In a
// session that was resumed the first place may be one from before.
func (s *Session) newACL() []zk.ACL {
	if resolved := s.resolvedACL.Load(); resolved != nil {
		return *resolved
	}
	return s.acl
}

// unresolved reports whether the ACL of new znodes still has an "auth" entry that can
// be replaced.
func (s *Session) unresolved() bool {
	return s.resolvedACL.Load() == nil && !s.unresolvable.Load() &&
		slices.ContainsFunc(s.acl, func(a zk.ACL) bool { return a.Scheme == authScheme })
}

// resolveACL learns from a place for what the server has replaced "auth". It costs one
// read for each session. If the read fails, the next place is asked.
func (s *Session) resolveACL(ctx context.Context, place Place) {
	var e jute.Encoder
	e.String(s.full(place.Path))
	list, err := readAgain(ctx, s, "read the ACL of", place.Path, func(life context.Context) ([]zk.ACL, error) {
		// Identified, because servers show the hashes only to an administrator of it.
		replies, err := s.exchangeIdentified(life, request{op: opGetACL, body: e.Bytes})
		if err == nil {
			err = replies[0].err()
		}
		if err != nil {
			return nil, err
		}
		d := jute.Decoder{Bytes: replies[0].body}
		var list []zk.ACL
		for _, a := range d.ACLs() {
			list = append(list, zk.ACL(a))
		}
		return list, d.Err
	})
	if err != nil {
		s.log.Debug("cannot read who the server says the creator is", "path", place.Path, "error", err)
		return
	}
	resolved, ok := replaceAuth(s.acl, list, s.identity.user)
	if !ok {
		s.unresolvable.Store(true)
		return
	}
	s.resolvedACL.Store(&resolved)
}

// replaceAuth returns acl with what a server has made of its "auth" entries, as the
// list of a znode with that ACL shows. It returns false if the list does not show it.
func replaceAuth(acl, list []zk.ACL, identity string) ([]zk.ACL, bool) {
	var creators, out []zk.ACL
	for _, a := range list {
		explicit := slices.ContainsFunc(acl, func(e zk.ACL) bool { return e.Scheme == a.Scheme && e.ID == a.ID })
		switch {
		case explicit, a.Scheme == "digest" && strings.HasPrefix(a.ID, identity+":"):
		case strings.HasSuffix(a.ID, ":x"):
			return nil, false // masked
		default:
			creators = append(creators, a)
		}
	}
	for _, a := range acl {
		if a.Scheme != authScheme {
			out = append(out, a)
			continue
		}
		for _, c := range creators {
			if e := (zk.ACL{Perms: a.Perms, Scheme: c.Scheme, ID: c.ID}); !slices.Contains(out, e) {
				out = append(out, e)
			}
		}
	}
	return out, len(creators) > 0
}
