package zookeeper

import (
	"context"
	"errors"
	gopath "path"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"golang.org/x/sync/errgroup"
)

// parallelReads bounds the reads that one look at a line has under way.
const parallelReads = 16

// readContenders reads the contenders of these names, in their order. Those who have
// left are left out.
func readContenders(ctx context.Context, s *session.Session, dir string, kind recipes.Kind, entries []line.Entry) ([]recipes.Contender, error) {
	found := make([]recipes.Contender, len(entries))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for i, e := range entries {
		g.Go(func() error {
			path := gopath.Join(dir, e.Name)
			node, err := s.Get(ctx, path)
			if errors.Is(err, recipes.ErrNoNode) {
				return nil
			}
			if err != nil {
				return err
			}
			found[i] = contender(kind, path, e, node)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	present := found[:0]
	for _, c := range found {
		if c.Znode != "" {
			present = append(present, c)
		}
	}
	return present, nil
}

func contender(kind recipes.Kind, path string, e line.Entry, node session.Node) recipes.Contender {
	data := node.Data
	if e.Bare() {
		data, _ = session.PlaceData(data)
	}
	c := recipes.Contender{
		Kind:      kind,
		Znode:     path,
		Sequence:  e.Sequence,
		Token:     recipes.Token(node.Stat.Czxid),
		SessionID: node.Stat.EphemeralOwner,
		Since:     time.UnixMilli(node.Stat.Ctime),
		Data:      data,
	}
	if kind == recipes.KindSharedLock || kind == recipes.KindPriorityLock {
		readMarks(&c)
	}
	return c
}
