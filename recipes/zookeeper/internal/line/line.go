package line

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Line is the line at a path. Its methods may be called from several goroutines.
type Line struct {
	Session  *session.Session
	Path     string
	Markers  []string        // what comes before the sequence number: "lock-", "n_"; one for each kind of contender
	Dialect  recipes.Dialect // whose markers they are; "" is the default
	Strategy recipes.Strategy
	Rule     Rule
	Permits  int   // a contender is granted when fewer of its blockers stand; 0 is 1
	Busy     *Busy // of the session

	// Passes, if not nil, returns a function that reads the data of the predecessor's
	// znode, that of the nearest blocker. It reports that this one allows the contender
	// to go first after all, and that nobody ahead of it can block the contender either.
	// Passes returns nil if that can never be. It makes a try cost one read more.
	Passes func(me Entry) func(data []byte) bool
	// Asked, if not nil, reports whether the data of a granted contender's
	// znode asks it to give way: Hold.Revoked.
	Asked func(data []byte) bool
}

// Options are what a contender wants of the line.
type Options struct {
	Kind   string // one of Line.Markers; "" is the first
	Data   []byte
	Try    bool                // give up, with ErrContended, instead of waiting
	Joined func(recipes.Place) // called once when the place is known; may be nil

	// Admit, if not nil, is called when the contender stands in line, before it
	// may be granted. If it fails, the contender leaves.
	Admit func(context.Context) error
}

// Enter joins the line and waits until it is granted. On an error the contender
// has left the line, or leaves it in the background where that has to wait for
// the connection or would delay a cancellation.
func (l *Line) Enter(ctx context.Context, o Options) (*Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l.hands() {
		hold, err := l.enterByHandoff(ctx, o)
		if !errors.Is(err, session.ErrNoBareZnode) {
			return hold, err
		}
		l.Session.CountFallback()
	}
	path, err := l.Session.CreateProtectedIn(ctx, l.Path, cmp.Or(o.Kind, l.Markers[0]), o.Data, l.Parent)
	if err != nil {
		return nil, err
	}
	return l.stay(ctx, path, o)
}

// stay waits for the turn of the contender whose znode is at path.
func (l *Line) stay(ctx context.Context, path string, o Options) (*Hold, error) {
	hold, err := l.admitted(ctx, gopath.Base(path), o)
	if err == nil {
		return hold, nil
	}
	return nil, l.afterLeaving(ctx, l.Session.Delete(path), err)
}

// afterLeaving is err, after which the contender leaves. A contender that did not get the turn
// at once, or that has met a foreign one, has left the line when it is told so. In the
// second case others ahead find its number missing from then on, and look. A semaphore
// that disagrees then finds out whether any contender is left.
func (l *Line) afterLeaving(ctx context.Context, deletion <-chan error, err error) error {
	if !errors.Is(err, recipes.ErrContended) && !errors.Is(err, recipes.ErrForeign) && !errors.Is(err, recipes.ErrMismatch) {
		return err
	}
	select {
	case <-deletion:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w; leaving the line: %w", err, ctx.Err())
	}
}

func (l *Line) admitted(ctx context.Context, name string, o Options) (*Hold, error) {
	if o.Admit != nil {
		if err := o.Admit(ctx); err != nil {
			return nil, err
		}
	}
	return l.wait(ctx, name, o)
}

// wait waits until the contender of that name is granted.
func (l *Line) wait(ctx context.Context, name string, o Options) (*Hold, error) {
	permits := max(l.Permits, 1)
	var armed Watches
	for {
		disconnected, err := l.Session.Connected(ctx)
		if err != nil {
			return nil, err
		}
		me, blockers, position, err := l.look(ctx, name)
		if err != nil {
			return nil, err
		}
		joined := func() {
			if o.Joined != nil {
				o.Joined(recipes.Place{Znode: gopath.Join(l.Path, name), Position: position})
				o.Joined = nil
			}
		}
		if len(blockers) < permits {
			joined()
			return l.grant(ctx, me.Name)
		}
		predecessor := blockers[len(blockers)-1]
		var allows func(data []byte) bool
		if l.Passes != nil {
			allows = l.Passes(me)
		}
		if o.Try {
			passes, err := l.tryPass(ctx, predecessor, allows)
			if errors.Is(err, recipes.ErrNoNode) {
				continue // it left between the listing and the look
			}
			if err != nil {
				return nil, err
			}
			joined()
			if passes {
				return l.grant(ctx, me.Name)
			}
			return nil, fmt.Errorf("%w: %s", recipes.ErrContended, gopath.Join(l.Path, blockers[0].Name))
		}
		toWatch := watched(l.Strategy, blockers, permits)
		if allows != nil && !slices.Contains(toWatch, predecessor) {
			toWatch = append(slices.Clone(toWatch), predecessor) // its leaving is enough, if the next one passes
		}
		passes, err := l.arm(ctx, &armed, predecessor, allows, toWatch, disconnected)
		if errors.Is(err, recipes.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		joined()
		if passes {
			return l.grant(ctx, me.Name)
		}
		l.Session.PrepareProof()
		if err := armed.Wait(ctx, l.Session, "waiting for "+l.Path, disconnected); err != nil {
			return nil, err
		}
	}
}

// tryPass reports whether the predecessor allows the contender to go first, without a watch.
func (l *Line) tryPass(ctx context.Context, predecessor Entry, allows func([]byte) bool) (bool, error) {
	if allows == nil {
		return false, nil
	}
	node, err := l.Session.Get(ctx, gopath.Join(l.Path, predecessor.Name))
	return err == nil && allows(node.Data), err
}

// arm watches these blockers, and reports whether the predecessor, if it is
// among them, allows the contender to go first.
func (l *Line) arm(ctx context.Context, armed *Watches, predecessor Entry, allows func([]byte) bool, toWatch []Entry, connection <-chan struct{}) (passes bool, err error) {
	armed.Retain(toWatch, connection)
	if allows != nil {
		armed.Drop(predecessor.Name) // it may have been watched when it was not the predecessor
	}
	for _, blocker := range toWatch {
		node, _, err := armed.Arm(ctx, l.Session, l.Path, blocker.Name)
		if err != nil {
			return false, err
		}
		if allows != nil && blocker == predecessor && allows(node.Data) {
			return true, nil
		}
	}
	return false, nil
}

// look lists the line and finds the contender's place in it.
func (l *Line) look(ctx context.Context, name string) (me Entry, blockers []Entry, position int, err error) {
	names, err := l.Names(ctx)
	if err != nil {
		return Entry{}, nil, 0, err
	}
	if err := l.foreign(ctx, names); err != nil {
		return Entry{}, nil, 0, err
	}
	entries, err := l.Order(ctx, names)
	if err != nil {
		return Entry{}, nil, 0, err
	}
	position = slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	if position < 0 {
		return Entry{}, nil, 0, fmt.Errorf("waiting in line: %w: %s", recipes.ErrRemoved, gopath.Join(l.Path, name))
	}
	me = entries[position]
	return me, l.Rule(entries[:position], me), position, nil
}

// grant is the turn of the contender of that name, after a listing that showed no
// blocker ahead of it.
func (l *Line) grant(ctx context.Context, name string) (*Hold, error) {
	h, err := Granted(ctx, l.Session, gopath.Join(l.Path, name), l.Asked)
	if err != nil {
		return nil, err
	}
	return l.Inspected(h), nil
}

// Granted is the turn of the contender whose znode is at path, whose recipe has found
// that it is its turn. It reads the znode, which may have been deleted since, or belong to
// a session that the server is about to remove. It uses getData, not exists: a contender
// that may not read its own znode could neither watch nor guard it, so it is refused here.
// Then session.BeginHold decides. asked is NewRevocable's.
func Granted(ctx context.Context, s *session.Session, path string, asked func([]byte) bool) (*Hold, error) {
	node, err := s.Get(ctx, path)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil, fmt.Errorf("first in line: %w: %s", recipes.ErrRemoved, path)
	}
	if err != nil {
		return nil, err
	}
	if node.Stat.EphemeralOwner != s.ID() {
		return nil, fmt.Errorf("first in line: %w: %s belongs to session %#x", recipes.ErrRemoved, path, node.Stat.EphemeralOwner)
	}
	return NewRevocable(ctx, s, path, recipes.Token(node.Stat.Czxid), asked)
}
