package session

import (
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// mostDialects is how many paths a session remembers. It forgets all when there are
// more: a session that lives long may use each of its paths once.
const mostDialects = 4096

// dialects are those in which a session uses its paths. Contenders in two dialects at one
// path do not exclude each other, so one session does not have both.
type dialects struct {
	mu     sync.Mutex
	byPath map[string]recipes.Dialect
}

// UseDialect notes the dialect of a recipe, and fails if another one is noted for the path.
// What is wrong with the dialect itself is left to the recipe.
func (s *Session) UseDialect(path string, dialect recipes.Dialect) error {
	dialect, err := dialect.Normalize()
	if err != nil {
		return nil
	}
	d := &s.dialects
	d.mu.Lock()
	defer d.mu.Unlock()
	if before, used := d.byPath[path]; used && before != dialect {
		return fmt.Errorf("%w: this session has used %s in the dialect %s before, and not in %s: give all recipes of a path the same dialect", recipes.ErrInvalid, path, before, dialect)
	}
	if d.byPath == nil || len(d.byPath) >= mostDialects {
		d.byPath = make(map[string]recipes.Dialect)
	}
	d.byPath[path] = dialect
	return nil
}

// Refuse returns the error of a recipe that was used at path and has met another one's
// contender. The caller may use the path in that one's dialect from then on: a contender of
// the first dialect that is still there is refused in its turn.
func (s *Session) Refuse(path string, met recipes.ForeignError) error {
	s.dialects.mu.Lock()
	defer s.dialects.mu.Unlock()
	delete(s.dialects.byPath, path)
	return &met
}
