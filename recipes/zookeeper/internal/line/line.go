package line

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strconv"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Line is the wait queue of a path. Its methods are safe for concurrent use.
type Line struct {
	Session  *session.Session
	Path     string
	Markers  []string        // the texts before the sequence number: "lock-", "n_"; one for each kind of contender
	Dialect  recipes.Dialect // the dialect of the markers; "" is the default
	Strategy recipes.Strategy
	Rule     Rule
	Permits  int   // a contender is granted when it has fewer blockers; 0 means 1
	Busy     *Busy // the session's

	// Passes, if not nil, returns a function that reads the data of the predecessor's znode,
	// which is the nearest blocker. It reports whether the predecessor allows the contender to
	// go first. Then no contender ahead of the predecessor may block the contender either.
	// Passes returns nil if the predecessor can never allow it. A try then costs one more
	// read.
	Passes func(me Entry) func(data []byte) bool
	// Asked, if not nil, reports whether the data of a holder's znode ask it to give way: see
	// Hold.Revoked.
	Asked func(data []byte) bool

	// Claim, if not nil, is called when a contender is next, before its hold begins. It writes the
	// contender's number to its znode: see SlotData. The token is the zxid of this write. Another
	// write to the znode ends the hold, and no guarded write passes after it.
	Claim func(ctx context.Context, znode string) error
}

// Options are the options of a contender.
type Options struct {
	Kind   string // one of Line.Markers; "" is the first
	Data   []byte
	Try    bool                // fail with ErrContended instead of waiting
	Joined func(recipes.Place) // if not nil, called once when the place is known

	// Admit, if not nil, is called when the contender has joined, before it may be granted. If
	// it fails, the contender leaves.
	Admit func(context.Context) error
}

// semaphore reports whether the contenders are a semaphore's in the default dialect. In other
// dialects, a semaphore's contenders wait in the queue of a lock.
func (l *Line) semaphore() bool { return slices.Equal(l.Markers, []string{Lease}) }

// Enter joins the wait queue and waits until the contender is granted. On error the contender
// has left, or it leaves in the background if leaving has to wait for the connection or would
// delay a cancellation.
func (l *Line) Enter(ctx context.Context, o Options) (*Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l.canHandOff() {
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
	return l.waitOrLeave(ctx, path, o)
}

func (l *Line) waitOrLeave(ctx context.Context, path string, o Options) (*Hold, error) {
	var hold *Hold
	var err error
	if o.Admit != nil {
		err = o.Admit(ctx)
	}
	if err == nil {
		hold, err = l.awaitGrant(ctx, gopath.Base(path), o)
	}
	if err != nil {
		return nil, l.AfterLeaving(ctx, l.Session.Delete(path), err)
	}
	return hold, nil
}

// AfterLeaving returns err. It first waits for the deletion if err is ErrContended, ErrForeign
// or ErrMismatch, so the caller sees that error only after the contender has left. After
// ErrForeign, contenders of the other recipe then find the number missing and list again. After
// ErrMismatch, the caller can find out whether any contender is left.
func (l *Line) AfterLeaving(ctx context.Context, deletion <-chan error, err error) error {
	if !errors.Is(err, recipes.ErrContended) && !errors.Is(err, recipes.ErrForeign) && !errors.Is(err, recipes.ErrMismatch) {
		return err
	}
	select {
	case <-deletion:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w; leaving the wait queue: %w", err, ctx.Err())
	}
}

func (l *Line) awaitGrant(ctx context.Context, name string, o Options) (*Hold, error) {
	permits := max(l.Permits, 1)
	var armed Watches
	for {
		disconnected, err := l.Session.Connected(ctx)
		if err != nil {
			return nil, err
		}
		me, blockers, position, err := l.locate(ctx, name)
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
			return l.Granted(ctx, gopath.Join(l.Path, name))
		}
		predecessor := blockers[len(blockers)-1]
		var allows func(data []byte) bool
		if l.Passes != nil {
			allows = l.Passes(me)
		}
		if o.Try {
			passes, err := l.tryPass(ctx, predecessor, allows)
			if errors.Is(err, recipes.ErrNoNode) {
				continue // the contender left between the listing and the read
			}
			if err != nil {
				return nil, err
			}
			joined()
			if passes {
				return l.Granted(ctx, gopath.Join(l.Path, name))
			}
			return nil, fmt.Errorf("%w: %s", recipes.ErrContended, gopath.Join(l.Path, blockers[0].Name))
		}
		toWatch := watched(l.Strategy, blockers, permits)
		if allows != nil && !slices.Contains(toWatch, predecessor) {
			toWatch = append(slices.Clone(toWatch), predecessor) // if it leaves, the next blocker may let this contender pass
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
			return l.Granted(ctx, gopath.Join(l.Path, name))
		}
		l.Session.PrepareProof()
		if err := armed.Wait(ctx, l.Session, "waiting for "+l.Path, disconnected); err != nil {
			return nil, err
		}
	}
}

// tryPass reports whether the predecessor allows the contender to go first. It sets no watch.
func (l *Line) tryPass(ctx context.Context, predecessor Entry, allows func([]byte) bool) (bool, error) {
	if allows == nil {
		return false, nil
	}
	node, err := l.Session.Get(ctx, gopath.Join(l.Path, predecessor.Name))
	return err == nil && allows(node.Data), err
}

// arm watches these blockers. It reports whether the predecessor, if it is among them, allows
// the contender to go first.
func (l *Line) arm(ctx context.Context, armed *Watches, predecessor Entry, allows func([]byte) bool, toWatch []Entry, connection <-chan struct{}) (passes bool, err error) {
	armed.Retain(toWatch, connection)
	if allows != nil {
		armed.Drop(predecessor.Name) // so that Arm reads it again, even if it was watched before it became the predecessor
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

func (l *Line) locate(ctx context.Context, name string) (me Entry, blockers []Entry, position int, err error) {
	names, err := l.Names(ctx)
	if err != nil {
		return Entry{}, nil, 0, err
	}
	if err := l.Foreign(ctx, names); err != nil {
		return Entry{}, nil, 0, err
	}
	entries, err := l.Order(ctx, names)
	if err != nil {
		return Entry{}, nil, 0, err
	}
	position = slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	if position < 0 {
		return Entry{}, nil, 0, fmt.Errorf("waiting for the grant: %w: %s", recipes.ErrRemoved, gopath.Join(l.Path, name))
	}
	me = entries[position]
	return me, l.Rule(entries[:position], me), position, nil
}

// Granted begins the hold of the contender whose znode is at path, when its recipe has found
// that it is next. It reads the znode, which may be deleted by now, or belong to a session that
// the server is about to expire. It uses getData, not exists: a contender that may not read its
// own znode could neither watch nor guard it, and is refused here. Then session.BeginHold
// decides.
func (l *Line) Granted(ctx context.Context, path string) (*Hold, error) {
	s := l.Session
	if l.Claim != nil {
		if err := l.Claim(ctx, path); err != nil {
			return nil, err
		}
	}
	node, err := s.Get(ctx, path)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil, fmt.Errorf("first in the wait queue: %w: %s", recipes.ErrRemoved, path)
	}
	if err != nil {
		return nil, err
	}
	if node.Stat.EphemeralOwner != s.ID() {
		return nil, fmt.Errorf("first in the wait queue: %w: %s belongs to session %#x", recipes.ErrRemoved, path, node.Stat.EphemeralOwner)
	}
	token, slot, ok := l.tokenOf(node)
	if !ok {
		return nil, fmt.Errorf("first in the wait queue: %w", overwritten(path))
	}
	hold, err := NewRevocable(ctx, s, path, token, l.Asked)
	if err != nil {
		return nil, err
	}
	hold.slot = slot
	return l.Inspected(hold), nil
}

// overwritten is the error of a contender with a number if another client has written to its znode.
func overwritten(path string) error {
	return fmt.Errorf("%w, or its data were replaced: %s", recipes.ErrRemoved, path)
}

// Watches are the watches of one waiter. The waiter keeps those that have not fired when it
// lists again, so a waiter that watches several znodes does not read all of them each time. The
// zero value is empty.
type Watches struct {
	connection <-chan struct{} // the connection on which they were set
	byName     map[string]*session.Watch
}

// Retain keeps the watches on these entries that have not fired. After a reconnect it keeps
// none, because events may have been missed.
func (w *Watches) Retain(entries []Entry, connection <-chan struct{}) {
	retained := make(map[string]*session.Watch, len(entries))
	for _, e := range entries {
		if watch := w.byName[e.Name]; watch != nil && w.connection == connection && !fired(watch) {
			retained[e.Name] = watch
		}
	}
	w.connection, w.byName = connection, retained
}

// Drop removes the watch on a child, so that Arm reads it again.
func (w *Watches) Drop(name string) { delete(w.byName, name) }

func fired(w *session.Watch) bool { return session.Happened(w.Fired()) }

// Arm watches a child of dir. If the child was not watched yet, Arm also reads it and sets fresh.
func (w *Watches) Arm(ctx context.Context, s *session.Session, dir, name string) (node session.Node, fresh bool, err error) {
	if w.byName[name] != nil {
		return session.Node{}, false, nil
	}
	node, watch, err := s.GetW(ctx, gopath.Join(dir, name))
	if err != nil {
		return session.Node{}, false, err
	}
	w.byName[name] = watch
	return node, true, nil
}

// Wait returns nil when the waiter must list again: a watch has fired, or the connection has
// ended.
func (w *Watches) Wait(ctx context.Context, s *session.Session, what string, disconnected <-chan struct{}) error {
	events := []<-chan struct{}{disconnected}
	for _, watch := range w.byName {
		events = append(events, watch.Fired())
	}
	return s.Wait(ctx, what, events...)
}

// claimed is the version of a contender's znode after its claim, the only write to it.
const claimed = 1

// slotMark starts the data of a lease with a number, before the number and a line feed. The
// contender's data follow. Contenders of other recipes write their marks in the same form.
const slotMark = "zkrecipes: slot="

// SlotData returns the data that a claim writes to a lease.
func SlotData(number int, data []byte) []byte {
	return append(append(strconv.AppendInt([]byte(slotMark), int64(number), 10), '\n'), data...)
}

// Slot returns the number in a lease, and the contender's data. ok is false before the claim, and
// if another client has written to the lease.
func Slot(lease session.Node) (number int, data []byte, ok bool) {
	first, data, terminated := bytes.Cut(lease.Data, []byte("\n"))
	digits, marked := bytes.CutPrefix(first, []byte(slotMark))
	n, err := strconv.ParseUint(string(digits), 10, 31)
	if lease.Stat.Version != claimed || !terminated || !marked || err != nil {
		return 0, lease.Data, false
	}
	return int(n), data, true
}

// tokenOf returns the token of a contender that is next, and its number if it claims one. ok is
// false if another client has written to a znode with a number.
func (l *Line) tokenOf(node session.Node) (token recipes.Token, slot *int, ok bool) {
	if l.Claim == nil {
		return recipes.Token(node.Stat.Czxid), nil, true
	}
	number, _, ok := Slot(node)
	return recipes.Token(node.Stat.Mzxid), &number, ok
}
