package zookeeper

import (
	"context"
	"errors"
	gopath "path"
	"regexp"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// numbered is a name that ends with a sequence number, and helper is one that belongs to
// a recipe in which nobody stands in line. A GUID is a member of a double barrier, of
// Curator's with hyphens and of kazoo's without. It may end with ten digits by chance.
var (
	numbered = regexp.MustCompile(`[0-9]{10}$`)
	helper   = regexp.MustCompile(`^(_c_.{36}-)?(member|receipt|guard|queue|qn|entry)-|^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$`)
)

// unknown counts the ephemeral sequential children of path that are not among the
// contenders.
func (s zkSession) unknown(ctx context.Context, path string, names []string, known []recipes.Contender) (int, error) {
	count := 0
	for _, name := range names {
		znode := gopath.Join(path, name)
		if !numbered.MatchString(name) || helper.MatchString(name) || slices.ContainsFunc(known, func(c recipes.Contender) bool { return c.Znode == znode }) {
			continue
		}
		stat, err := s.Session.Stat(ctx, znode)
		if errors.Is(err, recipes.ErrNoNode) {
			continue // as a contender that has left since the listing
		}
		if err != nil {
			return 0, err
		}
		if stat.EphemeralOwner != 0 {
			count++
		}
	}
	return count, nil
}
