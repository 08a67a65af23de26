package line

import (
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Lines creates the wait queues of one session.
type Lines struct {
	session *session.Session
	busy    *Busy
}

// Of returns the Lines of a session. They share the session's Busy, so a session needs only one
// Lines.
func Of(s *session.Session) *Lines { return &Lines{session: s, busy: new(Busy)} }

// Spoken holds the markers of a recipe, for each dialect that it supports.
type Spoken map[recipes.Dialect][]string

// At returns the wait queue at path. Only its first contender is granted. Errors begin with the
// name of the recipe.
func (ls *Lines) At(recipe, path string, strategy recipes.Strategy, dialect recipes.Dialect, spoken Spoken) (*Line, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("%s: %w", recipe, err)
	}
	strategy, err := strategy.Normalize()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", recipe, path, err)
	}
	dialect, err = dialect.Normalize()
	if err == nil && spoken[dialect] == nil {
		err = fmt.Errorf("%w: it has no dialect %s", recipes.ErrInvalid, dialect)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", recipe, path, err)
	}
	if strategy == recipes.Handoff && dialect != recipes.ZooKeeper {
		strategy = recipes.Predecessor // other libraries do not release by handoff
	}
	return &Line{Session: ls.session, Path: path, Markers: spoken[dialect], Dialect: dialect, Strategy: strategy, Rule: Exclusive, Busy: ls.busy}, nil
}
