package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// queued is an element, as the name of its znode describes it.
type queued struct {
	line.Entry
	priority int
}

// parse returns the elements among the names of a queue's children, in the order in which
// consumers take them. It ignores all other names.
func (q *queue) parse(names []string) []queued {
	var found []queued
	for _, name := range names {
		digits := strings.TrimPrefix(name, q.marker())
		digits = digits[:min(len(digits), q.digits())]
		priority, _ := strconv.ParseUint(digits, 10, 16)
		prefix := q.prefix(int(priority))
		if !strings.HasPrefix(name, prefix) {
			continue // for example if these are not digits
		}
		for _, e := range line.Parse([]string{name}, prefix) {
			found = append(found, queued{e, int(priority)})
		}
	}
	slices.SortFunc(found, compareQueued)
	return found
}

// Elements of other libraries, read in the sources of Curator 5.4.0 and kazoo 2.8.0.
const (
	curatorPrefix = "qn-"    // SimpleDistributedQueue, and the queue in ZooKeeper's own sources
	kazooPrefix   = "entry-" // entry-<priority>-<sequence>
	kazooPriority = 100      // if the producer gives none
)

// marker is the beginning of the names of all elements.
func (q *queue) marker() string {
	switch q.cfg.Dialect {
	case recipes.Curator:
		return curatorPrefix
	case recipes.Kazoo:
		return kazooPrefix
	}
	return elementPrefix
}

// digits is the number of digits of the priority in a name, or 0 without priorities.
func (q *queue) digits() int {
	switch {
	case q.cfg.Dialect == recipes.Kazoo:
		return 3
	case q.priority:
		return 2
	}
	return 0
}

// prefix is the name of an element without its sequence number.
func (q *queue) prefix(priority int) string {
	if q.digits() == 0 {
		return q.marker()
	}
	return fmt.Sprintf("%s%0*d-", q.marker(), q.digits(), priority)
}

// IsElement reports whether the znode of that path can be an element, in any dialect. No other
// recipe creates such names, but an application can register one (recipes.Names).
func IsElement(path string) bool {
	name := []string{gopath.Base(path)}
	for _, dialect := range []recipes.Dialect{recipes.ZooKeeper, recipes.Curator, recipes.Kazoo} {
		for _, priority := range []bool{false, true} {
			q := queue{cfg: recipes.QueueConfig{Dialect: dialect}, priority: priority}
			if len(q.parse(name)) > 0 {
				return true
			}
		}
	}
	return false
}

// compareQueued orders by priority, and then by sequence number, which may wrap around.
func compareQueued(a, b queued) int {
	switch {
	case a.priority != b.priority:
		return cmp.Compare(a.priority, b.priority)
	case line.Before(a.Sequence, b.Sequence):
		return -1
	case line.Before(b.Sequence, a.Sequence):
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}

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
