package zookeeper

import (
	"context"
	"errors"
	gopath "path"
	"regexp"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// numbered matches a name that ends with a sequence number. helper matches the name of a
// znode that is not a contender's, but belongs to a recipe. A GUID names a member of a
// double barrier, in Curator with hyphens and in kazoo without. By chance it can end with
// ten digits.
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
			continue // it has left since the listing
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
