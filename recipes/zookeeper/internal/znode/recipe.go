package znode

import (
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Recipe is the part that all recipes have: a session, a path, and errors that name both
// the recipe and the path.
type Recipe struct {
	Session *session.Session
	name    string
	path    string
}

// New returns the recipe of that name at path. It fails with the error of the path, or
// with the first check that is not nil.
func New(s *session.Session, name, path string, checks ...error) (Recipe, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return Recipe{}, fmt.Errorf("%s: %w", name, err)
	}
	r := Recipe{Session: s, name: name, path: path}
	for _, err := range checks {
		if err != nil {
			return Recipe{}, r.Failed(err)
		}
	}
	return r, nil
}

// NotRoot is the check of a recipe that cannot use the root, with the reason.
func NotRoot(path, why string) error {
	if path != "/" {
		return nil
	}
	return fmt.Errorf("%w: %s", recipes.ErrInvalid, why)
}

// Path returns the path of the recipe.
func (r Recipe) Path() string { return r.path }

func (r Recipe) SessionID() int64 { return r.Session.ID() }

// Child returns the path of a child, or of a znode further down.
func (r Recipe) Child(names ...string) string {
	return gopath.Join(r.path, gopath.Join(names...))
}

// Failed puts the recipe's name and path in front of an error. It returns nil for nil.
func (r Recipe) Failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", r.name, r.path, err)
}
