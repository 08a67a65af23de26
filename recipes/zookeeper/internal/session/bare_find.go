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

// find is Session.find for a bare znode, whose name does not tell whose it is. It reads
// the znodes called name, from the latest on, until one is older than begun, a
// transaction from before the creation was sent. Where numbers have come to their
// end they do not tell who came later, and it reads all. They are few, for there
// contenders go over to other names.
func (c *bareCreation) find(ctx context.Context) (BareZnode, error) {
	s, dir := c.session, c.dir
	if _, _, err := s.connectedAfter(ctx, c.connection); err != nil {
		return BareZnode{}, err
	}
	if err := s.Sync(ctx, dir); err != nil {
		return BareZnode{}, err
	}
	names, _, err := s.List(ctx, dir) // not bound by SessionConfig.MaxPacket
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

// numbered is a name that ends in a number which the server gave.
type numbered struct {
	name   string
	number int32
}

// exhausted is line.Entry.Exhausted.
func (n numbered) exhausted() bool { return n.number == math.MaxInt32 || n.number < 0 }

// latestFirst returns those of names that are called name and a number, the
// latest first. Numbers wrap, so they are compared as line.Before does.
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
