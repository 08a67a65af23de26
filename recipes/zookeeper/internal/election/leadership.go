package election

import (
	"context"
	"errors"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

type leadership struct {
	*line.Hold
	session *session.Session
	ack     string // "" where the dialect has no acknowledgements
}

func (l *leadership) Resign(ctx context.Context) error { return l.Release(ctx) }

// Acknowledge creates the acknowledgement as an ephemeral znode, which ends with the
// session. It also attaches the znode to the grant, which deletes it at its end. If the
// znode exists, Acknowledge replaces its data.
func (l *leadership) Acknowledge(ctx context.Context, data []byte) error {
	if l.ack == "" {
		return fmt.Errorf("acknowledge: %w: the dialect has no acknowledgements: the other library would take the znode for a candidate", recipes.ErrInvalid)
	}
	l.Attach(l.ack)
	for {
		var create session.Txn
		create.Create(l.ack, data, true)
		err := l.Commit(ctx, create)
		switch {
		case errors.Is(err, recipes.ErrNodeExists):
			var set session.Txn
			set.Set(l.ack, data, recipes.AnyVersion)
			err = l.Commit(ctx, set)
			if errors.Is(err, recipes.ErrNoNode) {
				continue // another client has deleted it in between
			}
		case errors.Is(err, recipes.ErrNoNode):
			if err = l.session.Ensure(ctx, gopath.Dir(l.ack)); err == nil {
				continue
			}
			if errors.Is(err, recipes.ErrSessionLost) {
				err = l.Err()
			}
		}
		return acknowledging(err)
	}
}

func acknowledging(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("acknowledge: %w", err)
}
