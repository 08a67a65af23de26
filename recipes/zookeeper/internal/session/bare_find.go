package session

import (
	"context"
	"errors"
	"math"
	gopath "path"
	"slices"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// search searches for a bare znode when the reply to its creation was lost. The name does not
// show which client created a znode. So search reads the znodes whose names consist of c.name and
// a number, the latest first, and stops at one that is older than the first attempt to create it.
// Exhausted numbers do not show which znode is later, so search reads all znodes that have one.
// Those are few, because contenders then use other names.
func (c *bareCreation) search(ctx context.Context) (*createdBare, error) {
	s := c.session
	names, err := c.present(ctx)
	if err != nil {
		return nil, err
	}
	for _, candidate := range latestFirst(names, c.name) {
		path := gopath.Join(gopath.Dir(c.path), candidate.name)
		node, err := s.GetOwn(ctx, path)
		switch {
		case errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrAccessDenied):
			continue
		case err != nil:
			return nil, err
		case node.Stat.Czxid <= c.begun && !candidate.exhausted():
			return nil, nil
		case strings.HasPrefix(string(node.Data), c.header):
			found := &createdBare{BareZnode{path, node.Stat}, -1}
			err := s.owns(path, node.Stat)
			if err == nil {
				s.bare.made(found.BareZnode)
			}
			return found, err
		}
	}
	return nil, nil
}

// numbered is a name that ends in a sequence number.
type numbered struct {
	name   string
	number int32
}

// exhausted mirrors line.Entry.Exhausted.
func (n numbered) exhausted() bool { return n.number == math.MaxInt32 || n.number < 0 }

// latestFirst returns the names that consist of name and a number, the latest first. Numbers
// wrap, so they are compared as line.Before compares them.
func latestFirst(names []string, name string) []numbered {
	var found []numbered
	for _, n := range names {
		digits, ok := strings.CutPrefix(n, name)
		if !ok {
			continue
		}
		if number, err := strconv.ParseInt(digits, 10, 32); err == nil {
			found = append(found, numbered{n, int32(number)})
		}
	}
	slices.SortFunc(found, func(a, b numbered) int { return int(b.number - a.number) })
	return found
}
