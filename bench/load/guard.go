package load

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// ErrBroken is matched by every [Violation].
var ErrBroken = errors.New("the lock is broken")

// Violation says which promise of a lock was broken, and how. The load is over
// and nothing was measured.
type Violation struct {
	Promise string // such as "mutual exclusion" or "growing tokens"
	Detail  string
}

func (v *Violation) Error() string { return fmt.Sprintf("%v: %s: %s", ErrBroken, v.Promise, v.Detail) }

// Is makes every violation match ErrBroken.
func (v *Violation) Is(target error) bool { return target == ErrBroken }

// guard watches over a lock from the inside.
//
// All of it is atomic: under a broken lock two contenders are in it at once, and
// it has to tell so rather than become a data race itself. Under a lock that is
// not broken, its words order what one holder did before what the next one does,
// so that holders can hand on plain variables.
type guard struct {
	holder atomic.Int64 // the id of who is inside, 0 for nobody
	token  atomic.Int64 // of the latest grant
	turns  atomic.Int64 // read on the way in, written on the way out
	read   int64        // what the present holder read of turns
}

// enter is called first thing by whoever has been granted.
func (g *guard) enter(id int64, token recipes.Token) error {
	if !g.holder.CompareAndSwap(0, id) {
		return &Violation{"mutual exclusion",
			fmt.Sprintf("contender %d was granted while contender %d held", id, g.holder.Load())}
	}
	// A counter that is read here and written by leave loses a turn if anybody
	// else was inside at any moment in between.
	g.read = g.turns.Load()
	if last := g.token.Swap(int64(token)); int64(token) <= last {
		return &Violation{"growing tokens",
			fmt.Sprintf("contender %d was granted with token %d after token %d", id, token, last)}
	}
	return nil
}

// leave is called last thing before the holder asks to leave.
func (g *guard) leave(id int64) error {
	g.turns.Store(g.read + 1)
	if !g.holder.CompareAndSwap(id, 0) {
		return &Violation{"mutual exclusion",
			fmt.Sprintf("contender %d found contender %d in its place when it left", id, g.holder.Load())}
	}
	return nil
}

// check compares the turns that were counted inside with those that were taken.
func (g *guard) check(taken int64) error {
	if counted := g.turns.Load(); counted != taken {
		return &Violation{"mutual exclusion",
			fmt.Sprintf("of %d turns only %d were counted: two contenders were inside at once", taken, counted)}
	}
	return nil
}
