package line

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// canHandOff reports whether grants can pass by handoff: whether a release of the predecessor alone
// means that its successor is next.
func (l *Line) canHandOff() bool {
	return l.Strategy == recipes.Handoff && len(l.Markers) == 1 && l.Permits <= 1 &&
		l.Passes == nil && l.Asked == nil && l.Session.CreatesBare()
}

func (l *Line) enterByHandoff(ctx context.Context, o Options) (*Hold, error) {
	marker := l.Markers[0]
	busy := l.Busy.at(l.Path)
	create := l.Session.EnsureQueuePath
	if l.semaphore() {
		create = l.Session.Ensure // contenders write to a semaphore's path with other strategies too
	}
	bare, parent, err := l.Session.CreateBare(ctx, l.Path, marker, o.Data, !busy || o.Try, create)
	if err != nil {
		return nil, err
	}
	name := gopath.Base(bare.Path)
	sequence, ok := parse(name, marker)
	me := Entry{name, sequence, marker}
	switch {
	case !ok:
		err = fmt.Errorf("%w: the server named a contender %q", recipes.ErrInternal, name)
	case me.Exhausted():
		return nil, l.giveUpBare(ctx, bare)
	case o.Admit != nil:
		err = o.Admit(ctx)
	}
	if err != nil {
		return nil, l.AfterLeaving(ctx, l.Session.DeleteBare(bare), err)
	}
	siblings := session.Siblings(parent, bare.Stat)
	if siblings == 0 {
		l.Busy.clean(l.kindAt(), nil, parent)
	}
	return l.waitByHandoff(ctx, &handoffWaiter{line: l, bare: bare, me: me}, o, siblings)
}

// waitByHandoff waits until the contender is granted. siblings is explained at awaitGrant.
func (l *Line) waitByHandoff(ctx context.Context, w *handoffWaiter, o Options, siblings int) (*Hold, error) {
	bare := w.bare
	hold, err := w.awaitGrant(ctx, o, siblings)
	if err == nil {
		return hold, nil
	}
	if errors.Is(err, recipes.ErrRemoved) {
		l.Session.ForgetBare(bare) // there is nothing to delete, and the name may belong to another znode
		return nil, err
	}
	return nil, l.AfterLeaving(ctx, l.Session.DeleteBare(bare), err)
}

// giveUpBare deletes a znode that cannot be used as a place. Its name may be used again while
// the parent exists, and does not show which contenders are ahead. giveUpBare waits for the
// deletion, so that the contender's next znode does not find this one.
func (l *Line) giveUpBare(ctx context.Context, bare session.BareZnode) error {
	select {
	case <-l.Session.DeleteBare(bare):
		return session.ErrNoBareZnode
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handoffWaiter is a contender with a bare znode that is not granted yet.
type handoffWaiter struct {
	line *Line
	bare session.BareZnode
	me   Entry

	resumed bool // the contender has waited in another process
}

// few is the largest number of siblings for which one listing costs less than reading one
// predecessor after the other.
const few = 8

// awaitGrant waits until the contender is granted. Unless the wait queue is known to be short, it
// first watches the znode with the number before its own. If that fails, it lists the path.
// siblings is the number of other children of the path, or negative if unknown.
func (w *handoffWaiter) awaitGrant(ctx context.Context, o Options, siblings int) (*Hold, error) {
	l := w.line
	joined := func(position int) {
		if o.Joined != nil {
			o.Joined(recipes.Place{Znode: w.bare.Path, Position: position})
			o.Joined = nil
		}
	}
	if siblings == 0 {
		l.Busy.note(l.Path, false)
		joined(0)
		return w.granted(ctx)
	}
	waited := w.resumed
	predecessor, position := Entry{Sequence: w.me.Sequence - 1, Kind: w.me.Kind}.bareName(), recipes.UnknownPosition
	if o.Try || 0 < siblings && siblings <= few {
		predecessor = ""
	}
	for {
		disconnected, err := l.Session.Connected(ctx)
		if err != nil {
			return nil, err
		}
		if predecessor == "" {
			predecessors, err := w.list(ctx)
			if err != nil {
				return nil, err
			}
			position = len(predecessors)
			if position == 0 {
				l.Busy.note(l.Path, waited)
				joined(0)
				return w.granted(ctx)
			}
			predecessor = predecessors[position-1].Name
			if o.Try {
				joined(position)
				return nil, fmt.Errorf("%w: %s", recipes.ErrContended, gopath.Join(l.Path, predecessors[0].Name))
			}
		}
		next, err := w.awaitPredecessor(ctx, predecessor, disconnected, func() { joined(position) })
		switch {
		case err != nil:
			return nil, fmt.Errorf("waiting for %s: %w", l.Path, err)
		case next == handed:
			l.Session.CountHandoff()
			l.Busy.note(l.Path, true)
			return w.granted(ctx)
		case next == reconnected:
			// The contenders ahead may still exist.
			waited = true
		default:
			l.Session.CountFallback()
			waited = waited || next == changed
			predecessor = ""
		}
	}
}

// awaitPredecessor watches the predecessor and returns what has happened to it.
func (w *handoffWaiter) awaitPredecessor(ctx context.Context, predecessor string, disconnected <-chan struct{}, watching func()) (outcome, error) {
	s := w.line.Session
	node, watch, own, err := s.Predecessor(ctx, w.bare, gopath.Join(w.line.Path, predecessor))
	if errors.Is(err, recipes.ErrNoNode) {
		return missing, nil
	}
	if err != nil {
		return 0, err
	}
	watching()
	s.PrepareProof()
	_, bare := session.BareData(node.Data)
	entries := Parse([]string{predecessor}, w.line.Markers...)
	bare = bare && len(entries) == 1 && entries[0].Bare()
	woke := wake{predecessor: predecessorState{bare, node.Stat.Version, node.Stat.Czxid}, mine: w.bare.Stat.Czxid}
	select {
	case <-watch.Fired():
		woke.why, woke.changed = predecessorFired, watch.Changed()
	case <-own.Fired():
		woke.why = ownFired
	case <-disconnected:
		woke.why = connectionLost
	case <-s.Done():
		return 0, s.Err()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	woke.gone = session.Happened(own.Fired()) // this event may have come first, although select chose another case
	if session.Happened(disconnected) {
		woke.why = connectionLost // own must be set again on the next connection before its events count
	}
	return woke.outcome(), nil
}

func (w *handoffWaiter) list(ctx context.Context) (predecessors []Entry, err error) {
	l := w.line
	names, parent, err := l.Session.List(ctx, l.Path)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil, w.removed()
	}
	if err != nil {
		return nil, err
	}
	if err := l.Foreign(ctx, names); err != nil {
		return nil, err
	}
	l.Busy.clean(l.kindAt(), names, parent)
	entries := Parse(names, l.Markers...)
	Sort(entries)
	if err := l.breakTies(ctx, entries); err != nil {
		return nil, err
	}
	predecessors, found := predecessorsOf(w.me.Name, w.bare.Stat.Czxid, entries, parent.Czxid)
	if !found {
		return nil, w.removed()
	}
	return predecessors, nil
}

func (w *handoffWaiter) removed() error {
	return fmt.Errorf("waiting for the grant: %w: %s", recipes.ErrRemoved, w.bare.Path)
}

// granted begins the hold, without a read: the waiter has concluded that its znode was created
// by this session and existed when no contender was ahead. BeginHold proves that the leader has
// not deleted it with the session since.
func (w *handoffWaiter) granted(ctx context.Context) (*Hold, error) {
	if err := w.line.Session.BeginHold(ctx); err != nil {
		return nil, err
	}
	return w.line.Inspected(newBareHold(w.line.Session, w.bare, w.me.Kind)), nil
}

// Below are the conclusions of a waiter with the strategy Handoff, as pure functions. The
// model in handoff_model_test.go calls them in every possible order of events, up to a bound.

type outcome int

const (
	handed      outcome = iota // the predecessor held and has released
	changed                    // the predecessor is deleted, or something else has happened
	missing                    // the predecessor did not exist
	reconnected                // unknown: events may have been missed
)

type reason int

const (
	predecessorFired reason = iota // the watch on its predecessor
	ownFired                       // the watch for the deletion of its own znode
	connectionLost                 // the connection on which both were set
)

// predecessorState holds what a waiter read of its predecessor when it set the watch.
type predecessorState struct {
	bare    bool  // its name and its data are those of a bare znode
	version int32 // of its data
	czxid   int64
}

type wake struct {
	why         reason
	predecessor predecessorState
	mine        int64 // the czxid of the waiter's znode
	changed     bool  // the predecessor's watch reported a change of data, not a deletion
	gone        bool  // the watch for the deletion of the waiter's znode has fired too
}

// outcome interprets the wake-up. A change of the predecessor's data is its release only if all
// of these conditions hold. Otherwise the waiter lists the path.
//
//   - The predecessor is a bare znode: only its own session can write to it.
//   - It was not written when the watch was set, so this change is the first one.
//   - It is older than the waiter's znode. Otherwise its name was used again, and the waiter's
//     znode belonged to a wait queue that is deleted.
//   - The waiter's own znode was not deleted earlier. The server would have reported that
//     first: that watch was set first, and events arrive in order.
func (w wake) outcome() outcome {
	switch {
	case w.why == connectionLost:
		return reconnected
	case w.why == ownFired || w.gone:
		return changed
	case w.changed && w.predecessor.bare && w.predecessor.version == 0 && w.predecessor.czxid < w.mine:
		return handed
	}
	return changed
}

// predecessorsOf returns the contenders ahead of the znode called name in a sorted listing, and
// whether the listing contains the znode. The parent must be older than the znode. If the
// parent was created again, the znode is deleted, and name belongs to another one.
func predecessorsOf(name string, czxid int64, entries []Entry, parentCzxid int64) (predecessors []Entry, found bool) {
	if parentCzxid > czxid {
		return nil, false
	}
	position := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	if position < 0 {
		return nil, false
	}
	return entries[:position], true
}
