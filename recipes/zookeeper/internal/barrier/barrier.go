package barrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

type barrier struct{ znode.Recipe }

func New(s *session.Session, path string) (recipes.Barrier, error) {
	r, err := znode.New(s, "barrier", path, znode.NotRoot(path, "the root always exists, so this barrier could never be removed"))
	if err != nil {
		return nil, err
	}
	return &barrier{r}, nil
}

func (b *barrier) Set(ctx context.Context, data []byte) error {
	if err := ctx.Err(); err != nil {
		return b.Failed(err)
	}
	err := b.Session.Create(ctx, b.Path(), data)
	if errors.Is(err, recipes.ErrNodeExists) {
		return nil
	}
	if b.Session.Unsettled(ctx, err) {
		if isSet, readErr := b.IsSet(ctx); readErr == nil && isSet {
			return nil // deleted by this client or another one
		}
	}
	return b.Failed(b.Session.Because(ctx, err))
}

func (b *barrier) Remove(ctx context.Context) error {
	return b.Failed(b.remove(ctx))
}

func (b *barrier) remove(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	before, err := b.Session.Stat(ctx, b.Path())
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return err
	}
	// If the server lags, it may not have the barrier yet, and before is zero. So the
	// deletion is sent in any case.
	for {
		err := b.Session.DeleteOnce(ctx, b.Path(), recipes.AnyVersion)
		switch {
		case err == nil, errors.Is(err, recipes.ErrNoNode):
			return nil
		case !b.Session.Unsettled(ctx, err):
			return b.Session.Because(ctx, err)
		}
		if syncErr := b.Session.Sync(ctx, b.Path()); syncErr != nil {
			return fmt.Errorf("%w: %w", recipes.ErrUnknownOutcome, syncErr)
		}
		now, readErr := b.Session.Stat(ctx, b.Path())
		switch {
		case errors.Is(readErr, recipes.ErrNoNode):
			return nil
		case readErr != nil:
			return fmt.Errorf("%w: %w", recipes.ErrUnknownOutcome, readErr)
		case before.Czxid == 0:
			return err // this barrier may have been set since
		case now.Czxid != before.Czxid:
			return nil // the barrier is gone, and another one has been set
		}
	}
}

func (b *barrier) Wait(ctx context.Context) error {
	return b.Failed(znode.Await(ctx, b.Session, "waiting", func() ([]<-chan struct{}, error) {
		isSet, changed, err := b.read(ctx)
		if err != nil || !isSet {
			return nil, err
		}
		return znode.Events(changed), nil
	}))
}

// read reports whether the barrier is set, with a watch if it is. It reads the znode
// for two reasons, where the text has exists(). First, exists() leaves a watch at the
// session and the server for each barrier that was not set, and most of them never
// fire (CURATOR-14). Second, a session that may not read the znode would wait for
// ever: servers do not report its removal to that session.
func (b *barrier) read(ctx context.Context) (isSet bool, changed *session.Watch, err error) {
	_, changed, err = b.Session.GetW(ctx, b.Path())
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		return false, nil, nil
	case errors.Is(err, recipes.ErrTooLarge):
		return b.Session.ExistsW(ctx, b.Path())
	}
	return err == nil, changed, err
}

func (b *barrier) IsSet(ctx context.Context) (bool, error) {
	_, err := b.Session.Stat(ctx, b.Path())
	if errors.Is(err, recipes.ErrNoNode) {
		return false, nil
	}
	return err == nil, b.Failed(err)
}
