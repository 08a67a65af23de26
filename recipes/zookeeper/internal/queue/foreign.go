package queue

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// kinds are the recipes by the prefix of their elements. Curator's DistributedQueue has the
// prefix of the text.
var kinds = []struct {
	prefix  string
	dialect recipes.Dialect
	recipe  string
}{
	{elementPrefix, recipes.ZooKeeper, "Queue"},
	{curatorPrefix, recipes.Curator, "SimpleDistributedQueue"},
	{kazooPrefix, recipes.Kazoo, "Queue"},
}

// foreign returns an error if one of the names is a third-party element. The consumers of
// other libraries ignore our elements, but kazoo's take every child of the path.
func (q *queue) foreign(names []string) error {
	for _, name := range names {
		for _, k := range kinds {
			if k.dialect != q.cfg.Dialect && strings.HasPrefix(name, k.prefix) && line.Numbered(name) {
				return q.Session.Refuse(q.Path(), recipes.ForeignError{Dialect: k.dialect, Recipe: k.recipe, Znode: q.Child(name)})
			}
		}
		if q.cfg.Dialect != recipes.ZooKeeper && slices.Contains([]string{receiptsName, claimsName, boundName}, name) {
			return q.Session.Refuse(q.Path(), recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Queue", Znode: q.Child(name)})
		}
	}
	return nil
}

// fewElements is the most children that the first put of a session lists to find
// third-party elements. Longer queues are left to their consumers, which list them anyway.
const fewElements = 1000

// checkForeign is foreign for a put, which lists nothing otherwise. It lists once for each
// session and path.
func (q *queue) checkForeign(ctx context.Context) error {
	if q.listing.checked.Load() {
		return nil
	}
	stat, err := q.Session.Stat(ctx, q.Path())
	var names []string
	if err == nil && 0 < stat.NumChildren && stat.NumChildren <= fewElements {
		names, err = q.Session.Children(ctx, q.Path())
	}
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return err
	}
	if err := q.foreign(names); err != nil {
		return err
	}
	q.listing.checked.Store(true)
	return nil
}
