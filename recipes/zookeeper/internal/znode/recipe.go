package znode

import (
	"context"
	"fmt"
	gopath "path"
	"strings"
	"time"

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

// Metered returns the result of get. If the session reports to telemetry (session.Report), Metered
// counts the grant under the name of r: its wait, from this call on, and its end.
//
// A recipe calls it where the application's wait begins. The znode of a grant may exist earlier
// than the grant, and a recipe may hold znodes that are no grant of its own. So Grant.Begin does
// not count.
func Metered[G interface{ OnEnd(func(reason error)) }](ctx context.Context, r Recipe, get func() (G, error)) (G, error) {
	meters := r.Session.Meters()
	if meters == nil {
		return get()
	}
	asked := time.Now()
	g, err := get()
	if err != nil {
		return g, err
	}
	capability := strings.ReplaceAll(r.name, " ", "-")
	meters.Granted(ctx, capability, time.Since(asked))
	g.OnEnd(func(reason error) { meters.Ended(capability, reason) })
	return g, nil
}
