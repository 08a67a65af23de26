package session

import (
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// full returns the path at the server.
func (s *Session) full(path string) string {
	if path == "/" && s.wire.Chroot != "" {
		return s.wire.Chroot
	}
	return s.wire.Chroot + path
}

// local is the reverse of full.
func (s *Session) local(path string) string {
	return strings.TrimPrefix(path, s.wire.Chroot)
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
