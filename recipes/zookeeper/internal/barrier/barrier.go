package barrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

type barrier struct {
	session *session.Session
	path    string
}

// New returns the barrier at path.
func New(s *session.Session, path string) (recipes.Barrier, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("barrier: %w", err)
	}
	if path == "/" {
		return nil, fmt.Errorf("barrier: %w: the root always exists, so this barrier could never be removed", recipes.ErrInvalid)
	}
	return &barrier{session: s, path: path}, nil
}

func (b *barrier) Path() string { return b.path }

func (b *barrier) Set(ctx context.Context, data []byte) error {
	if err := ctx.Err(); err != nil {
		return b.failed(err)
	}
	err := b.session.Create(ctx, b.path, data)
	if errors.Is(err, recipes.ErrNodeExists) {
		return nil
	}
	if b.session.Unsettled(ctx, err) {
		if isSet, lookErr := b.IsSet(ctx); lookErr == nil && isSet {
			return nil // set by any client
		}
	}
	return b.failed(b.session.Because(ctx, err))
}

func (b *barrier) Remove(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return b.failed(err)
	}
	before, err := b.session.Stat(ctx, b.path)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return b.failed(err)
	}
	// A server that lags may not know the barrier yet, and before is zero then. So
	// the deletion is sent in any case.
	for {
		err := b.session.DeleteOnce(ctx, b.path, recipes.AnyVersion)
		switch {
		case err == nil, errors.Is(err, recipes.ErrNoNode):
			return nil
		case !b.session.Unsettled(ctx, err):
			return b.failed(b.session.Because(ctx, err))
		}
		if syncErr := b.session.Sync(ctx, b.path); syncErr != nil {
			return b.failed(fmt.Errorf("%w: %w", recipes.ErrUnknownOutcome, syncErr))
		}
		now, lookErr := b.session.Stat(ctx, b.path)
		switch {
		case errors.Is(lookErr, recipes.ErrNoNode):
			return nil
		case lookErr != nil:
			return b.failed(fmt.Errorf("%w: %w", recipes.ErrUnknownOutcome, lookErr))
		case before.Czxid == 0:
			return b.failed(err) // this barrier may have been set since
		case now.Czxid != before.Czxid:
			return nil // that one is gone, and another has been set
		}
	}
}

func (b *barrier) Wait(ctx context.Context) error {
	for {
		disconnected, err := b.session.Connected(ctx)
		if err != nil {
			return b.failed(err)
		}
		isSet, changed, err := b.look(ctx)
		if err != nil {
			return b.failed(err)
		}
		if !isSet {
			return nil
		}
		if err := b.session.Wait(ctx, "waiting", changed.Fired(), disconnected); err != nil {
			return b.failed(err)
		}
	}
}

// look reports whether the barrier is set, with a watch if it is. It reads the znode
// for two reasons, where the text has exists(). First, exists() leaves a watch at the
// session and the server for each barrier that was not set, and most of them never
// fire (CURATOR-14). Second, a session that may not read the znode would wait for
// ever: servers do not report its removal to that session.
func (b *barrier) look(ctx context.Context) (isSet bool, changed *session.Watch, err error) {
	_, changed, err = b.session.GetW(ctx, b.path)
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		return false, nil, nil
	case errors.Is(err, recipes.ErrTooLarge):
		return b.session.ExistsW(ctx, b.path)
	}
	return err == nil, changed, err
}

func (b *barrier) IsSet(ctx context.Context) (bool, error) {
	_, err := b.session.Stat(ctx, b.path)
	if errors.Is(err, recipes.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, b.failed(err)
	}
	return true, nil
}

func (b *barrier) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("barrier %s: %w", b.path, err)
}
