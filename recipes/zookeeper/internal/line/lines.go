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

// At returns the line at path, in which only the first contender is granted.
// Markers are those of Line. Errors begin with the name of the recipe.
func (ls *Lines) At(recipe, path string, strategy recipes.Strategy, markers ...string) (*Line, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("%s: %w", recipe, err)
	}
	strategy, err := recipes.ParseStrategy(string(strategy))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", recipe, path, err)
	}
	return &Line{Session: ls.session, Path: path, Markers: markers, Strategy: strategy, Rule: Exclusive, Busy: ls.busy}, nil
}
