package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	if q.priority {
		found = parsePriorities(names)
	} else {
		for _, e := range line.Parse(names, elementPrefix) {
			if strings.HasPrefix(e.Name, elementPrefix) {
				found = append(found, queued{Entry: e})
			}
		}
	}
	slices.SortFunc(found, compareQueued)
	return found
}

func parsePriorities(names []string) []queued {
	var found []queued
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, elementPrefix)
		if !ok || len(digits) < 3 || !isDigit(digits[0]) || !isDigit(digits[1]) {
			continue
		}
		priority := int(digits[0]-'0')*10 + int(digits[1]-'0')
		for _, e := range line.Parse([]string{name}, priorityPrefix(priority)) {
			found = append(found, queued{e, priority})
		}
	}
	return found
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func priorityPrefix(priority int) string { return fmt.Sprintf("%s%02d-", elementPrefix, priority) }

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
