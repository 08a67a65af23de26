package queue

import (
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// foreigners are the prefixes of other libraries' elements. Read in the sources of
// Curator 5.4.0 and kazoo 2.8.0. Curator's DistributedQueue has the text's queue-.
var foreigners = []struct {
	prefix  string
	dialect recipes.Dialect
	recipe  string
}{
	{"qn-", recipes.Curator, "SimpleDistributedQueue"}, // and ZooKeeper's own
	{"entry-", recipes.Kazoo, "Queue"},                 // entry-<priority>-<sequence>
}

// foreign returns an error if one of the names is that of another library's element.
// Its consumers do not see ours; kazoo's take whatever the path has.
func (q *queue) foreign(names []string) error {
	for _, name := range names {
		for _, f := range foreigners {
			if len(name) > len(f.prefix) && name[:len(f.prefix)] == f.prefix && line.Numbered(name) {
				return &recipes.ForeignError{Dialect: f.dialect, Recipe: f.recipe, Znode: gopath.Join(q.path, name)}
			}
		}
	}
	return nil
}
