package zookeeper

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// owned is an ephemeral znode that this session has made and stands by: a
// member of a group or of a barrier, a registered name. It implements
// recipes.Grant.
//
// It differs from line.Grant in two things. Its name may be the application's,
// so that "a node of that name exists" does not yet mean that it is ours: every
// write names the node's version, and a version that does not match leads to a
// look at the czxid. And it lives long and its data changes, so its deletion is
// watched from the beginning, by the watch on children that never come, which
// changes of data do not fire.
type owned struct {
	session *session.Session
	path    string
	czxid   int64

	lost     chan struct{}
	unlisten func() bool
	remove   sync.Once
	removed  chan struct{} // closed when result is set
	result   error

	writing chan struct{} // holds one element while an Update or Commit is under way

	mu     sync.Mutex
	stat   session.Stat // as last known; its version is what writes name
	reason error        // why it stands no longer
}

// own makes a node below dir, of that name or, where it is "", with a GUID and
// marker, and stands by it.
func own(ctx context.Context, s *session.Session, dir, name, marker string, data []byte) (*owned, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var path string
	var stat session.Stat
	var err error
	if name == "" {
		path, err = s.CreateProtected(ctx, dir, marker, data)
	} else {
		path = gopath.Join(dir, name)
		stat, err = s.CreateNamed(ctx, path, data)
	}
	if errors.Is(err, recipes.ErrNodeExists) {
		return nil, taken(ctx, s, path, err)
	}
	if err != nil {
		return nil, err
	}
	return standBy(ctx, s, path, stat)
}

// taken says who has the name that was asked for.
func taken(ctx context.Context, s *session.Session, path string, err error) error {
	stat, lookErr := s.Stat(ctx, path)
	if lookErr != nil {
		return err // gone again, or not to be seen
	}
	return &recipes.TakenError{Znode: path, SessionID: sessionOf(stat), Since: time.UnixMilli(stat.Ctime)}
}

// standBy watches the new node, and reads what is not known of it.
func standBy(ctx context.Context, s *session.Session, path string, made session.Stat) (*owned, error) {
	var stat session.Stat
	var watch *session.Watch
	disconnected, err := s.Connected(ctx)
	if err == nil {
		stat, watch, err = s.DeletionW(ctx, path)
	}
	if err == nil && (stat.EphemeralOwner != s.ID() || made.Czxid != 0 && stat.Czxid != made.Czxid) || errors.Is(err, recipes.ErrNoNode) {
		return nil, fmt.Errorf("%w: %s", recipes.ErrRemoved, path)
	}
	if err != nil {
		if made.Czxid != 0 {
			s.DeleteOwned(path, made)
		} else {
			s.Delete(path)
		}
		return nil, err
	}
	o := &owned{
		session: s, path: path, czxid: stat.Czxid, stat: stat,
		lost: make(chan struct{}), removed: make(chan struct{}), writing: make(chan struct{}, 1),
	}
	s.BeginHold()
	o.mu.Lock()
	o.unlisten = s.OnLost(func() { o.sessionLost() })
	o.mu.Unlock()
	s.Background(func(life context.Context) { o.guard(life, disconnected, watch) })
	return o, nil
}

// guard waits for the deletion of the node by another hand.
func (o *owned) guard(life context.Context, disconnected <-chan struct{}, watch *session.Watch) {
	for {
		select {
		case <-watch.Fired():
		case <-disconnected:
		case <-o.lost:
			return
		case <-life.Done():
			return
		}
		var err error
		if disconnected, err = o.session.Connected(life); err != nil {
			return
		}
		var stat session.Stat
		stat, watch, err = o.session.DeletionW(life, o.path)
		if errors.Is(err, recipes.ErrNoNode) || err == nil && stat.Czxid != o.czxid {
			o.end(o.gone())
			return
		}
		if err != nil {
			if life.Err() == nil {
				o.session.Log().Error("cannot watch own znode; its removal will not be noticed", "path", o.path, "error", err)
			}
			return
		}
	}
}

func (o *owned) gone() error { return fmt.Errorf("%w: %s", recipes.ErrRemoved, o.path) }

// Token implements recipes.Grant.
func (o *owned) Token() recipes.Token { return recipes.Token(o.czxid) }

// Znode implements recipes.Grant.
func (o *owned) Znode() string { return o.path }

// Done implements recipes.Grant.
func (o *owned) Done() <-chan struct{} { return o.lost }

// Err implements recipes.Grant.
func (o *owned) Err() error {
	o.sessionLost() // tells in a goroutine, which whoever asks does not wait for
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reason
}

func (o *owned) sessionLost() {
	if err := o.session.Err(); err != nil {
		o.end(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
	}
}

// end makes it stand no longer, once, and reports whether it was this call.
func (o *owned) end(reason error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reason != nil {
		return false
	}
	o.reason = reason
	close(o.lost)
	o.unlisten()
	o.session.EndHold()
	return true
}

func (o *owned) version() int32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stat.Version
}

func (o *owned) know(stat session.Stat) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stat = stat
}

// look reads the node's record, after a write found another version than the one
// known, and says whether the node is still ours.
func (o *owned) look(ctx context.Context) error {
	stat, err := o.session.Stat(ctx, o.path)
	if errors.Is(err, recipes.ErrNoNode) || err == nil && stat.Czxid != o.czxid {
		reason := o.gone()
		o.end(reason)
		return reason
	}
	if err == nil {
		o.know(stat)
	}
	if errors.Is(err, recipes.ErrSessionLost) {
		return o.Err()
	}
	return err
}

// give deletes the node, once, and waits until it is known to be gone, as
// recipes.Hold.Release documents.
func (o *owned) give(ctx context.Context, what string) error {
	o.remove.Do(func() {
		if !o.end(recipes.ErrReleased) {
			o.result = fmt.Errorf("%s: %w", what, o.Err())
			close(o.removed)
			return
		}
		o.mu.Lock()
		deletion := o.session.DeleteOwned(o.path, o.stat)
		o.mu.Unlock()
		go func() {
			defer close(o.removed)
			switch err := <-deletion; {
			case errors.Is(err, recipes.ErrNoNode):
				o.result = fmt.Errorf("%s: %w", what, o.gone())
			case errors.Is(err, recipes.ErrSessionLost):
				o.result = fmt.Errorf("%s: %w: %w", what, recipes.ErrNotHeld, err)
			case err != nil:
				o.result = fmt.Errorf("%s: %w", what, err)
			}
		}()
	})
	select {
	case <-o.removed:
		return o.result
	case <-ctx.Done():
		return fmt.Errorf("%s %s: %w", what, o.path, ctx.Err())
	}
}

// sessionOf returns the session that a node belongs to, or 0. ZooKeeper marks
// containers and nodes with a time to live in the same field.
func sessionOf(stat session.Stat) int64 {
	const container, ttl = -1 << 63, 0xff
	if owner := stat.EphemeralOwner; owner != container && byte(owner>>56) != ttl {
		return owner
	}
	return 0
}
