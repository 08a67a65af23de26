package queue

import (
	"context"
	"errors"
	gopath "path"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// kinds are whose elements have a prefix. Curator's DistributedQueue has the text's.
var kinds = []struct {
	prefix  string
	dialect recipes.Dialect
	recipe  string
}{
	{elementPrefix, recipes.ZooKeeper, "Queue"},
	{curatorPrefix, recipes.Curator, "SimpleDistributedQueue"},
	{kazooPrefix, recipes.Kazoo, "Queue"},
}

// foreign returns an error if one of the names is of an element of another dialect. Its
// consumers do not see ours; kazoo's take whatever the path has.
func (q *queue) foreign(names []string) error {
	for _, name := range names {
		for _, k := range kinds {
			if k.dialect != q.cfg.Dialect && strings.HasPrefix(name, k.prefix) && line.Numbered(name) {
				return q.session.Refuse(q.path, recipes.ForeignError{Dialect: k.dialect, Recipe: k.recipe, Znode: gopath.Join(q.path, name)})
			}
		}
		if q.cfg.Dialect != recipes.DefaultDialect && slices.Contains([]string{receiptsName, claimsName, boundName}, name) {
			return q.session.Refuse(q.path, recipes.ForeignError{Dialect: recipes.DefaultDialect, Recipe: "Queue", Znode: gopath.Join(q.path, name)})
		}
	}
	return nil
}

// fewElements is a number of children that the first put of a session lists to see what
// they are. Longer queues are left to their consumers, who list them in any case.
const fewElements = 1000

// look is foreign for a put, which lists nothing else: once for each session and path.
func (q *queue) look(ctx context.Context) error {
	if q.listing.seen.Load() {
		return nil
	}
	stat, err := q.session.Stat(ctx, q.path)
	var names []string
	if err == nil && 0 < stat.NumChildren && stat.NumChildren <= fewElements {
		names, err = q.session.Children(ctx, q.path)
	}
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return err
	}
	if err := q.foreign(names); err != nil {
		return err
	}
	q.listing.seen.Store(true)
	return nil
}
