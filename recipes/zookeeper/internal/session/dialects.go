package session

import (
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// mostDialects limits how many paths a session remembers. Above it, the session forgets all of
// them: a session that lives long may use each of its paths once.
const mostDialects = 4096

// dialects records in which dialect a session uses each path. Contenders in two dialects at one
// path do not exclude each other, so a session uses only one.
type dialects struct {
	mu     sync.Mutex
	byPath map[string]recipes.Dialect
}

// UseDialect records the dialect of a recipe, and fails if the path has another one. It ignores
// an invalid dialect, which the recipe itself reports.
func (s *Session) UseDialect(path string, dialect recipes.Dialect) error {
	dialect, err := dialect.Normalize()
	if err != nil {
		return nil
	}
	d := &s.dialects
	d.mu.Lock()
	defer d.mu.Unlock()
	if before, used := d.byPath[path]; used && before != dialect {
		return fmt.Errorf("%w: this session has already used %s in the dialect %s, not in %s: give all recipes of a path the same dialect", recipes.ErrInvalid, path, before, dialect)
	}
	if d.byPath == nil || len(d.byPath) >= mostDialects {
		d.byPath = make(map[string]recipes.Dialect)
	}
	d.byPath[path] = dialect
	return nil
}

// Refuse returns the error of a recipe that has met a third-party contender at path. Afterwards
// the caller may use the path in that contender's dialect. If a contender of the first dialect
// is still there, the recipe will refuse it in turn.
func (s *Session) Refuse(path string, met recipes.ForeignError) error {
	s.dialects.mu.Lock()
	defer s.dialects.mu.Unlock()
	delete(s.dialects.byPath, path)
	return &met
}
