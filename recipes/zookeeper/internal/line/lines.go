package line

import (
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Lines are the lines of one session, by path.
type Lines struct {
	session *session.Session
	busy    *Busy
}

// Of returns the lines of a session. They share what the session remembers of
// them, so there is one Lines for each session.
func Of(s *session.Session) *Lines { return &Lines{session: s, busy: new(Busy)} }

// Spoken are the markers of a recipe in the dialects that it knows.
type Spoken map[recipes.Dialect][]string

// At returns the line at path, in which only the first contender is granted. Errors
// begin with the name of the recipe.
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
		strategy = recipes.Predecessor // the other library does not release by a handoff
	}
	return &Line{Session: ls.session, Path: path, Markers: spoken[dialect], Dialect: dialect, Strategy: strategy, Rule: Exclusive, Busy: ls.busy}, nil
}
