package line

import (
	"context"
	"errors"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Stamp sets the data of the line's path, if it has that version, in one
// transaction with a check of the own node, and returns the path's new record.
// Its Mzxid is larger than that of any stamp by whoever was granted before: a
// grant is stamped while it stands, so before the next one begins. It is sent at
// most once, as session.Commit is.
//
// A place is not guarded by a second node here, as in Commit: the path's record
// tells whether it is the one in which the place was made.
func (g *Grant) Stamp(ctx context.Context, data []byte, version int32) (session.Stat, error) {
	if err := g.Err(); err != nil {
		return session.Stat{}, err
	}
	var t session.Txn
	t.Check(g.path, recipes.AnyVersion)
	t.Set(gopath.Dir(g.path), data, version)
	stat, err := g.session.CommitSet(ctx, t)
	var refused *session.TxnError
	switch {
	case errors.As(err, &refused) && refused.Index == 0 && errors.Is(err, recipes.ErrNoNode):
		return session.Stat{}, g.Removed()
	case err != nil:
		return session.Stat{}, fmt.Errorf("stamp: %w", err)
	case g.place != nil && stat.Czxid > g.place.Stat.Czxid:
		return session.Stat{}, g.Removed() // with its path, which somebody made again
	}
	return stat, nil
}

// Stamped reads the line's path, for its data and the version to stamp it with.
func (g *Grant) Stamped(ctx context.Context) (session.Node, error) {
	node, err := g.session.Get(ctx, gopath.Dir(g.path))
	if errors.Is(err, recipes.ErrNoNode) || err == nil && g.place != nil && node.Stat.Czxid > g.place.Stat.Czxid {
		return session.Node{}, g.Removed()
	}
	return node, err
}
