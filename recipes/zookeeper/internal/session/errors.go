package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// answer says of the server's answer what it is to. One that is malformed, and no error, is
// ErrInternal.
func answer(what, path string, err error) error {
	var code conn.Code
	if !errors.As(err, &code) {
		err = fmt.Errorf("%w: the server answered: %v", recipes.ErrInternal, err)
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// unavailable says that ctx ended while no server could be reached.
func (s *Session) unavailable(what string, ctx context.Context) error {
	if last := s.wire.LastError(); last != nil {
		return fmt.Errorf("%s: %w (last attempt: %v): %w", what, recipes.ErrUnavailable, last, ctx.Err())
	}
	return fmt.Errorf("%s: %w (no attempt has ended yet, of %s): %w", what, recipes.ErrUnavailable, strings.Join(s.cfg.Servers, ","), ctx.Err())
}
