package load

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type contender struct {
	id      int64 // from 1
	reads   bool  // as a reader
	acquire func(context.Context) (grant, error)
}

// grant is a grant of either recipe. The load never calls Done: its first call costs a read
// and a watch event, which are not part of a handoff.
type grant struct {
	token   recipes.Token
	release func(context.Context) error
}

// contenders returns one contender for each session, and calls joined each time that one
// of them joins the line.
func (l Load) contenders(joined func(id int64)) ([]contender, error) {
	all := make([]contender, len(l.Sessions))
	for i, session := range l.Sessions {
		id := int64(i + 1)
		acquire, err := l.acquireFunc(session, func(recipes.Place) { joined(id) })
		if err != nil {
			return nil, err
		}
		all[i] = contender{id: id, acquire: acquire}
	}
	return all, nil
}

func (l Load) acquireFunc(s recipes.Recipes, joined func(recipes.Place)) (func(context.Context) (grant, error), error) {
	if err := l.Recipe.Validate(); err != nil {
		return nil, err
	}
	return l.acquireBy(string(l.Recipe), s, grants.Options{Strategy: l.Strategy, Joined: joined})
}

// acquireBy acquires through the entry with that name in the catalog of grants.
func (l Load) acquireBy(name string, s recipes.Recipes, o grants.Options) (func(context.Context) (grant, error), error) {
	w := grants.Named(name)
	e, err := w.Open(s, l.Path, o)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (grant, error) {
		g, err := e.Get(ctx)
		if err != nil {
			return grant{}, fmt.Errorf("acquire %s: %w", l.Path, err)
		}
		return grant{g.Token(), func(ctx context.Context) error { return w.GiveBack(ctx, g) }}, nil
	}, nil
}

// ErrBroken is matched by every [Violation].
var ErrBroken = errors.New("the lock is broken")

// Violation is the error of a load in which a lock or another recipe broke a promise. The load then
// has no measurement.
type Violation struct {
	Promise string // such as "mutual exclusion" or "growing tokens"
	Detail  string
}

func (v *Violation) Error() string { return fmt.Sprintf("%v: %s: %s", ErrBroken, v.Promise, v.Detail) }

// Is makes every violation match ErrBroken.
func (v *Violation) Is(target error) bool { return target == ErrBroken }

// guard checks mutual exclusion from inside the lock. A contender whose session has ended no longer
// holds the lock, even if a busy machine delays the notification. The load then ends with an error.
//
// Its fields are atomic. Under a broken lock two contenders are inside at once, and the
// guard must report that instead of being a data race. Under a correct lock, the atomic
// fields order the accesses of one holder before those of the next. So holders can pass on
// plain variables.
type guard struct {
	sessions []recipes.Client // by id, the first is that of contender 1

	holder atomic.Int64 // the id of the holder; 0 if there is none
	token  atomic.Int64 // of the latest grant
	turns  atomic.Int64 // enter reads it, leave stores one more
	read   int64        // the value of turns that the current holder has read
}

// enter must be the first call after a grant.
func (g *guard) enter(id int64, token recipes.Token) error {
	if !g.holder.CompareAndSwap(0, id) {
		holder := g.holder.Load() // 0 if it has just left
		return violated(&Violation{"mutual exclusion", fmt.Sprintf("contender %d was granted while contender %d held", id, holder)},
			g.sessions[max(holder, 1)-1], g.sessions[id-1])
	}
	// If another contender is inside at any moment before leave, the counter loses a turn,
	// and check finds that.
	g.read = g.turns.Load()
	if last := g.token.Swap(int64(token)); int64(token) <= last {
		return violated(&Violation{"growing tokens", fmt.Sprintf("contender %d was granted with token %d after token %d", id, token, last)},
			g.sessions[id-1])
	}
	return nil
}

// violated returns the violation, or the error of the first session that has ended: what it held
// may have been granted to another contender.
func violated(v *Violation, sessions ...recipes.Client) error {
	for _, s := range sessions {
		if err := s.Err(); err != nil {
			return fmt.Errorf("a contender lost its session while it held: %w", err)
		}
	}
	return v
}

// leave must be the last call before the holder leaves the lock.
func (g *guard) leave() {
	g.turns.Store(g.read + 1)
	g.holder.Store(0)
}

// check returns a violation if the counter that holders increment is below the number of turns that
// were taken.
func (g *guard) check(taken int64) error {
	if counted := g.turns.Load(); counted != taken {
		return &Violation{"mutual exclusion",
			fmt.Sprintf("of %d turns only %d were counted: two contenders were inside at once", taken, counted)}
	}
	return nil
}

// rest counts the contenders at rest: they wait in line or have left for good. Only one
// goroutine at a time, the holder's, may call await.
type rest struct {
	n     atomic.Int64
	moved chan struct{} // holds one element if n has changed since await read it
}

func newRest() *rest { return &rest{moved: make(chan struct{}, 1)} }

func (r *rest) add(delta int64) {
	r.n.Add(delta)
	select {
	case r.moved <- struct{}{}:
	default:
	}
}

func (r *rest) await(ctx context.Context, n int64) error {
	for r.n.Load() != n {
		select {
		case <-r.moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
