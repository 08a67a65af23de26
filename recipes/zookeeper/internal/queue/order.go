package queue

import (
	"cmp"
	"fmt"
	gopath "path"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// queued is an element as the name of its znode tells it.
type queued struct {
	line.Entry
	priority int
}

// parse returns the elements among the names of a queue's children, in the order in
// which they are to be taken. It ignores all other names.
func (q *queue) parse(names []string) []queued {
	var found []queued
	for _, name := range names {
		priority := 0
		digits, ok := strings.CutPrefix(name, q.marker())
		if n := q.digits(); ok && n > 0 {
			priority, ok = number(digits, n)
		}
		if !ok {
			continue
		}
		for _, e := range line.Parse([]string{name}, q.prefix(priority)) {
			if strings.HasPrefix(name, q.prefix(priority)) {
				found = append(found, queued{e, priority})
			}
		}
	}
	slices.SortFunc(found, compareQueued)
	return found
}

// Elements of other libraries. Read in the sources of Curator 5.4.0 and kazoo 2.8.0.
const (
	curatorPrefix = "qn-"    // of SimpleDistributedQueue, and ZooKeeper's own
	kazooPrefix   = "entry-" // entry-<priority>-<sequence>
	kazooPriority = 100      // where none is given
)

// marker is how the names of all elements begin.
func (q *queue) marker() string {
	switch q.cfg.Dialect {
	case recipes.Curator:
		return curatorPrefix
	case recipes.Kazoo:
		return kazooPrefix
	}
	return elementPrefix
}

// digits is how many digits a priority has in a name. In a queue without priorities it is 0.
func (q *queue) digits() int {
	switch {
	case q.cfg.Dialect == recipes.Kazoo:
		return 3
	case q.priority:
		return 2
	}
	return 0
}

// prefix is the name of an element without its number.
func (q *queue) prefix(priority int) string {
	if q.digits() == 0 {
		return q.marker()
	}
	return fmt.Sprintf("%s%0*d-", q.marker(), q.digits(), priority)
}

// IsElement reports whether a znode of that path can be an element, in any dialect. No
// recipe gives such a name to anything else. An application can, to a name that it
// registers.
func IsElement(path string) bool {
	name := []string{gopath.Base(path)}
	for _, dialect := range []recipes.Dialect{recipes.DefaultDialect, recipes.Curator, recipes.Kazoo} {
		for _, priority := range []bool{false, true} {
			q := queue{cfg: recipes.QueueConfig{Dialect: dialect}, priority: priority}
			if len(q.parse(name)) > 0 {
				return true
			}
		}
	}
	return false
}

// number reads the first n digits of text.
func number(text string, n int) (value int, ok bool) {
	if len(text) < n {
		return 0, false
	}
	for _, c := range []byte(text[:n]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		value = 10*value + int(c-'0')
	}
	return value, true
}

// compareQueued orders by priority and then by sequence, as a serial number.
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
