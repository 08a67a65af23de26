package znode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	gopath "path"
	"sync"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Ephemeral is an ephemeral znode that this session has created and watches: a member of a
// group or barrier, or a registered name. It implements recipes.Grant.
//
// It differs from line.Hold in two ways. Its name may be the application's, so another client
// may create a znode of that name later. Therefore each write compares the version, and after a
// mismatch the czxid. It is also long-lived and its data change, so its deletion is watched
// from the beginning. The watch is on its children, which it never has, so changes of data do
// not fire it.
type Ephemeral struct {
	Grant

	writing chan struct{} // a mutex that can be awaited with a context: full while Update or Commit runs

	mu   sync.Mutex
	stat session.Stat // the last known record; writes compare its version
}

// CreateEphemeral creates a znode below dir and watches it. Its name is name or, if that is
// empty, a GUID, marker and a sequence number. If dir is missing, parent creates it:
// session.Ensure or session.Provide.
func CreateEphemeral(ctx context.Context, s *session.Session, dir, name, marker string, data []byte, parent func(context.Context, string) error) (*Ephemeral, error) {
	if name == "" {
		return CreateProtected(ctx, s, dir, uuid.New(), marker, data, parent)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path := gopath.Join(dir, name)
	stat, err := s.CreateNamedIn(ctx, path, data, parent)
	if errors.Is(err, recipes.ErrNodeExists) {
		return nil, Taken(ctx, s, path, err)
	}
	if err != nil {
		return nil, err
	}
	return watchOver(ctx, s, path, stat)
}

// CreateProtected is CreateEphemeral for a znode whose name has that GUID: see
// session.CreateProtectedAs.
func CreateProtected(ctx context.Context, s *session.Session, dir string, guid uuid.UUID, marker string, data []byte, parent func(context.Context, string) error) (*Ephemeral, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := s.CreateProtectedAs(ctx, guid, dir, marker, data, parent)
	if err != nil {
		return nil, err
	}
	return watchOver(ctx, s, path, session.Stat{})
}

// watchOver watches the new znode, and deletes it if that fails.
func watchOver(ctx context.Context, s *session.Session, path string, made session.Stat) (*Ephemeral, error) {
	e, err := watched(ctx, s, path, made)
	switch {
	case err == nil || errors.Is(err, recipes.ErrRemoved):
	case made.Czxid != 0:
		s.DeleteOwned(path, made, nil)
	default:
		s.Delete(path)
	}
	return e, err
}

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
	e := &Ephemeral{stat: stat, writing: make(chan struct{}, 1)}
	e.Begin(s, path, recipes.Token(stat.Czxid))
	e.deletion = watch
	s.Background(func(life context.Context) {
		e.Watch(life, disconnected, watch, func(ctx context.Context) (*session.Watch, error) {
			stat, again, err := s.DeletionW(ctx, path)
			if err == nil && recipes.Token(stat.Czxid) != e.token {
				err = recipes.ErrNoNode
			}
			return again, err
		}, func() { e.End(e.gone()) })
	})
	return e, nil
}

func (e *Ephemeral) gone() error { return fmt.Errorf("%w: %s", recipes.ErrRemoved, e.path) }

func (e *Ephemeral) Done() <-chan struct{} { return e.Ended }

// Name returns the last element of the znode's path.
func (e *Ephemeral) Name() string { return gopath.Base(e.path) }

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
	stat, err := e.Session.Stat(ctx, e.path)
	if errors.Is(err, recipes.ErrNoNode) || err == nil && recipes.Token(stat.Czxid) != e.token {
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
	return e.Grant.Remove(ctx, what, func(lost error, settle func(error)) {
		if lost != nil && !errors.Is(lost, session.ErrUnwatched) {
			settle(fmt.Errorf("%s: %w", what, lost))
			return
		}
		e.mu.Lock()
		deletion := e.Session.DeleteOwned(e.path, e.stat, e.deletionWatch())
		e.mu.Unlock()
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

// Update replaces the znode's data. It repeats an attempt whose outcome is unknown, which is
// harmless: only this process writes the znode, one write at a time.
func (e *Ephemeral) Update(ctx context.Context, data []byte) error {
	if err := e.beginWrite(ctx); err != nil {
		return fmt.Errorf("update %s: %w", e.path, err)
	}
	defer e.endWrite()
	unknown := false // an earlier attempt may have succeeded
	for {
		err := e.set(ctx, data)
		if err == nil {
			return nil
		}
		unknown = unknown || errors.Is(err, recipes.ErrUnknownOutcome)
		if errors.Is(err, ErrReadAgain) {
			if err = e.reread(ctx); err == nil || ctx.Err() != nil || e.Session.Err() != nil {
				continue // set returns the reason
			}
		}
		if unknown && !errors.Is(err, recipes.ErrRemoved) {
			err = UnknownOutcome(err)
		}
		return fmt.Errorf("update: %w", err)
	}
}

// set makes one attempt. If the error matches ErrReadAgain, the caller rereads the znode and
// tries again. Once ctx is done, that attempt sends nothing and returns ctx's error.
func (e *Ephemeral) set(ctx context.Context, data []byte) error {
	if err := e.Err(); err != nil {
		return err
	}
	stat, err := e.Session.SetOnce(ctx, e.path, data, e.version())
	switch {
	case err == nil && recipes.Token(stat.Czxid) == e.token:
		e.setStat(stat)
		return nil
	case e.Session.Err() != nil:
		return e.Err()
	case err == nil, // this is another client's znode, as reread will find
		errors.Is(err, recipes.ErrBadVersion), errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrUnknownOutcome):
		return errors.Join(ErrReadAgain, err)
	}
	return err
}

func (e *Ephemeral) beginWrite(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case e.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Ephemeral) endWrite() { <-e.writing }

func (e *Ephemeral) Write(ctx context.Context, ops ...recipes.Op) error {
	return e.Grant.Write(ctx, ops, e.Commit)
}

// Commit commits a transaction together with a check of the znode at its version, and of others.
// The index in a *session.TxnError is the operation's index in t.
func (e *Ephemeral) Commit(ctx context.Context, t session.Txn, others ...Guard) error {
	if err := e.beginWrite(ctx); err != nil {
		return fmt.Errorf("guarded write: %w", err)
	}
	defer e.endWrite()
	return Commit(ctx, e.Session, t, append([]Guard{e}, others...))
}

// Check implements Guard.
func (e *Ephemeral) Check(_ context.Context, guarded *session.Txn) error {
	guarded.Check(e.path, e.version())
	return nil
}

// Refused implements Guard.
func (e *Ephemeral) Refused(ctx context.Context, _ *session.TxnError) error { return e.reread(ctx) }

// Resume resumes a znode below dir that another process has created in this session: see
// session.Resume. If the znode is deleted, or another one has its name, the error matches
// recipes.ErrNotHeld and recipes.ErrRemoved. Resume does not change the znode.
func Resume(ctx context.Context, s *session.Session, dir, path string, token recipes.Token) (*Ephemeral, error) {
	if token == 0 {
		return nil, fmt.Errorf("resume: %w: %s without its token", recipes.ErrInvalid, path)
	}
	return resume(ctx, s, dir, path, token)
}

// ResumeWaiter is Resume for a znode with which nothing was granted yet, so that the caller has
// no token.
func ResumeWaiter(ctx context.Context, s *session.Session, dir, path string) (*Ephemeral, error) {
	return resume(ctx, s, dir, path, 0)
}

func resume(ctx context.Context, s *session.Session, dir, path string, token recipes.Token) (*Ephemeral, error) {
	if gopath.Dir(path) != dir {
		return nil, fmt.Errorf("resume: %w: %q is not of %s", recipes.ErrInvalid, path, dir)
	}
	e, err := watched(ctx, s, path, session.Stat{})
	if err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	if err := s.ResumeZnode(path, e.stat, token); err != nil {
		e.End(err)
		return nil, err
	}
	return e, nil
}

// Released returns an Ephemeral that was released and whose znode is deleted.
func Released(s *session.Session, path string, token recipes.Token) *Ephemeral {
	e := &Ephemeral{Grant: Grant{Session: s, path: path, token: token, Ended: make(chan struct{}), reason: recipes.ErrReleased}, writing: make(chan struct{}, 1)}
	close(e.Ended)
	return e
}
