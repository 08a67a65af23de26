package zookeeper

import (
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// mostDialects is how many paths a session remembers. It forgets all when there are
// more: a session that lives long may use each of its paths once.
const mostDialects = 4096

// spoken are the dialects in which a session has used its paths. Contenders in two
// dialects at one path do not exclude each other, so one session does not have both.
type spoken struct {
	mu     sync.Mutex
	byPath map[string]recipes.Dialect
}

// agree notes the dialect of a recipe, and fails if another one was noted for the path.
// What is wrong with the dialect itself is left to the recipe.
func (d *spoken) agree(path string, dialect recipes.Dialect) error {
	dialect, err := recipes.ParseDialect(string(dialect))
	if err != nil {
		return nil
	}
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

// in makes a recipe if its dialect is that of the path. A recipe that cannot be made
// leaves the path as it was.
func in[T any](s zkSession, path string, dialect recipes.Dialect, open func() (T, error)) (T, error) {
	made, err := open()
	if err == nil {
		err = s.spoken.agree(path, dialect)
	}
	if err != nil {
		var none T
		return none, err
	}
	return made, nil
}
