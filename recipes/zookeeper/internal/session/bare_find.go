package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	gopath "path"
	"slices"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// find searches for a bare znode when the reply to its creation was lost: see Session.find. The
// name does not show which client created a znode. So find reads the znodes whose names consist
// of c.name and a number, the latest first, and stops at one that is older than the first attempt
// to create it. Exhausted numbers do not show which znode is later, so find reads all znodes that
// have one. Those are few, because contenders then use other names.
func (c *bareCreation) find(ctx context.Context) (BareZnode, error) {
	s, dir := c.session, c.dir
	if _, _, err := s.connectedAfter(ctx, c.connection); err != nil {
		return BareZnode{}, err
	}
	if err := s.Sync(ctx, dir); err != nil {
		return BareZnode{}, err
	}
	names, _, err := s.List(ctx, dir) // List is not limited by SessionConfig.MaxPacket
	if errors.Is(err, recipes.ErrNoNode) {
		return BareZnode{}, nil
	}
	if err != nil {
		return BareZnode{}, err
	}
	for _, candidate := range latestFirst(names, c.name) {
		path := gopath.Join(dir, candidate.name)
		node, err := s.GetOwn(ctx, path)
		switch {
		case errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrAccessDenied):
			continue
		case err != nil:
			return BareZnode{}, err
		case node.Stat.Czxid <= c.begun && !candidate.exhausted():
			return BareZnode{}, nil
		case strings.HasPrefix(string(node.Data), c.header):
			if node.Stat.EphemeralOwner != s.id {
				return BareZnode{}, fmt.Errorf("%w: %s has owner %#x, not session %#x", recipes.ErrInternal, path, node.Stat.EphemeralOwner, s.id)
			}
			bare := BareZnode{path, node.Stat}
			s.bare.made(bare)
			return bare, nil
		}
	}
	return BareZnode{}, nil
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
