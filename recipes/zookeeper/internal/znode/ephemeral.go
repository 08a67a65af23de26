package znode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	gopath "path"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Ephemeral is an ephemeral znode that this session has created and watches: a member of a
// group or barrier, or a registered name. It implements recipes.Grant.
//
// It differs from line.Hold in two ways. Its name may be the application's, so another client
// may create a znode of that name later. Therefore each write compares the version, and after a
// mismatch the czxid. It also lives long and its data change, so its deletion is watched from
// the beginning. The watch is on its children, which it never has, so changes of data do not
// fire it.
type Ephemeral struct {
	session *session.Session
	path    string
	czxid   int64

	done     chan struct{}
	unlisten func() bool
	removal  session.Removal
	removing bool // Remove has closed done; only one removal runs at a time

	writing chan struct{} // a mutex that can be awaited with a context: full while Update or Commit runs

	mu     sync.Mutex
	stat   session.Stat // the last known record; writes compare its version
	reason error        // why the grant has ended; nil while it is held
}

// CreateEphemeral creates a znode below dir and watches it. Its name is name or, if that is
// empty, a GUID, marker and a sequence number. If dir is missing, parent creates it:
// session.Ensure or session.Provide.
func CreateEphemeral(ctx context.Context, s *session.Session, dir, name, marker string, data []byte, parent func(context.Context, string) error) (*Ephemeral, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var path string
	var stat session.Stat
	var err error
	if name == "" {
		path, err = s.CreateProtectedIn(ctx, dir, marker, data, parent)
	} else {
		path = gopath.Join(dir, name)
		stat, err = s.CreateNamedIn(ctx, path, data, parent)
	}
	if errors.Is(err, recipes.ErrNodeExists) {
		return nil, Taken(ctx, s, path, err)
	}
	if err != nil {
		return nil, err
	}
	return watchOver(ctx, s, path, stat)
}

// watchOver watches the new znode, and deletes it if that fails.
func watchOver(ctx context.Context, s *session.Session, path string, made session.Stat) (*Ephemeral, error) {
	e, err := watched(ctx, s, path, made)
	switch {
	case err == nil || errors.Is(err, recipes.ErrRemoved):
	case made.Czxid != 0:
		s.DeleteOwned(path, made)
	default:
		s.Delete(path)
	}
	return e, err
}

// watched watches a znode of the session and begins the grant.
func watched(ctx context.Context, s *session.Session, path string, made session.Stat) (*Ephemeral, error) {
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
		return nil, err
	}
	if err := s.BeginHold(ctx); err != nil {
		return nil, err
	}
	e := &Ephemeral{
		session: s, path: path, czxid: stat.Czxid, stat: stat,
		done: make(chan struct{}), writing: make(chan struct{}, 1),
	}
	e.mu.Lock()
	e.unlisten = s.OnLost(func() { e.sessionLost() })
	e.mu.Unlock()
	s.Background(func(life context.Context) { e.awaitDeletion(life, disconnected, watch) })
	return e, nil
}

// awaitDeletion ends the grant when another client deletes the znode.
func (e *Ephemeral) awaitDeletion(life context.Context, disconnected <-chan struct{}, watch *session.Watch) {
	for {
		if err := e.session.Wait(life, "watching "+e.path, watch.Fired(), disconnected, e.done); err != nil || session.Happened(e.done) {
			return
		}
		var err error
		if disconnected, err = e.session.Connected(life); err != nil {
			return
		}
		stat, again, err := e.session.DeletionW(life, e.path)
		for e.session.Throttled(life, err) {
			stat, again, err = e.session.DeletionW(life, e.path)
		}
		watch = again
		if errors.Is(err, recipes.ErrNoNode) || err == nil && stat.Czxid != e.czxid {
			e.End(e.gone())
			return
		}
		if err != nil {
			if life.Err() == nil {
				e.End(fmt.Errorf("%w: %w %s: %w", recipes.ErrNotHeld, session.ErrUnwatched, e.path, err))
			}
			return
		}
	}
}

func (e *Ephemeral) gone() error { return fmt.Errorf("%w: %s", recipes.ErrRemoved, e.path) }

// Name returns the last element of the znode's path.
func (e *Ephemeral) Name() string { return gopath.Base(e.path) }

// Token implements recipes.Grant.
func (e *Ephemeral) Token() recipes.Token { return recipes.Token(e.czxid) }

// Znode implements recipes.Grant.
func (e *Ephemeral) Znode() string { return e.path }

// Done implements recipes.Grant.
func (e *Ephemeral) Done() <-chan struct{} { return e.done }

// Err implements recipes.Grant.
func (e *Ephemeral) Err() error {
	e.sessionLost() // a goroutine also passes on the loss, and Err does not wait for it
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reason
}

func (e *Ephemeral) sessionLost() {
	if err := e.session.Err(); err != nil {
		e.End(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
	}
}

// End ends the grant with that reason and does not delete the znode. It reports whether the
// grant was held.
func (e *Ephemeral) End(reason error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reason != nil {
		return false
	}
	e.reason = reason
	close(e.done)
	e.unlisten()
	e.session.EndHold()
	return true
}

func (e *Ephemeral) version() int32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stat.Version
}

func (e *Ephemeral) setStat(stat session.Stat) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stat = stat
}

// reread reads the znode's record after a write has found another version. It returns an error
// if the znode is deleted, even if another one has its name.
func (e *Ephemeral) reread(ctx context.Context) error {
	stat, err := e.session.Stat(ctx, e.path)
	if errors.Is(err, recipes.ErrNoNode) || err == nil && stat.Czxid != e.czxid {
		reason := e.gone()
		e.End(reason)
		return reason
	}
	if err == nil {
		e.setStat(stat)
	}
	if errors.Is(err, recipes.ErrSessionLost) {
		return e.Err()
	}
	return err
}

// Remove deletes the znode and waits until it is known to be deleted, like
// recipes.Hold.Release. Errors begin with what.
func (e *Ephemeral) Remove(ctx context.Context, what string) error {
	return e.removal.Run(ctx, what+" "+e.path, func(settle func(error)) {
		stat, lost := e.beginRemoval()
		if lost != nil && !errors.Is(lost, session.ErrUnwatched) {
			settle(fmt.Errorf("%s: %w", what, lost))
			return
		}
		deletion := e.session.DeleteOwned(e.path, stat)
		go func() {
			err := <-deletion
			switch {
			case errors.Is(err, recipes.ErrNoNode):
				err = fmt.Errorf("%s: %w", what, e.gone())
			case errors.Is(err, recipes.ErrSessionLost):
				err = fmt.Errorf("%s: %w: %w", what, recipes.ErrNotHeld, err)
			case cmp.Or(err, lost) != nil:
				err = fmt.Errorf("%s: %w", what, cmp.Or(err, lost))
			}
			settle(err)
		}()
	})
}

// beginRemoval ends the grant, or returns why it has already ended. stat is the last known
// record.
func (e *Ephemeral) beginRemoval() (stat session.Stat, lost error) {
	if e.End(recipes.ErrReleased) {
		e.removing = true
	}
	if !e.removing {
		lost = e.Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stat, lost
}
