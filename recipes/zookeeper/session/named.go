package session

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// CreateNamed creates an ephemeral znode of exactly this path and returns its
// record. Missing parents are created, as by CreateProtected. If the name is taken
// the error matches ErrNodeExists, also where it is this session that has it.
//
// The name holds no GUID, so after a lost reply a node of that name has to be
// known for this call's: it is, if this session owns it and it was created after
// the call began. The session's own earlier creations have smaller transaction
// ids than the last one it had seen then, and of its own calls for one path only
// one runs at a time; other sessions' nodes have other owners.
//
// On an error nothing remains of it, on the terms of CreateProtected.
func (s *Session) CreateNamed(ctx context.Context, path string, data []byte) (Stat, error) {
	if err := s.fits(path, data); err != nil {
		return Stat{}, err
	}
	type result struct {
		stat Stat
		err  error
	}
	done := make(chan result)
	started := s.Background(func(life context.Context) {
		release, err := s.names.take(ctx, path)
		if err == nil {
			defer release()
		}
		var stat Stat
		if err == nil {
			stat, err = s.createNamed(ctx, life, path, data)
		}
		select {
		case done <- result{stat, err}:
		case <-ctx.Done():
			if err == nil {
				s.deleteOwned(life, path, stat)
			}
		case <-life.Done():
		}
	})
	if !started {
		return Stat{}, s.Err()
	}
	select {
	case r := <-done:
		return r.stat, r.err
	case <-s.Lost():
		return Stat{}, s.Err()
	case <-ctx.Done():
		return Stat{}, s.interrupted("create "+path, ctx)
	}
}

// createNamed does not return before the outcome is known, except when life has
// ended, and sends nothing new when ctx has.
func (s *Session) createNamed(ctx, life context.Context, path string, data []byte) (Stat, error) {
	begun := s.wire.lastZxid.Load()
	for {
		if _, err := s.Connected(ctx); err != nil {
			return Stat{}, err
		}
		now, _, _ := s.status.Get()
		_, err := call(life, s, func(c *zk.Conn) (string, error) {
			return c.Create(s.full(path), data, zk.FlagEphemeral, s.acl)
		})
		switch {
		case err == nil:
			// The reply does not tell the czxid.
			stat, err := s.Stat(life, path)
			if err == nil && (stat.EphemeralOwner != s.id || stat.Czxid <= begun) {
				err = recipes.ErrNoNode
			}
			if errors.Is(err, recipes.ErrNoNode) {
				return Stat{}, fmt.Errorf("%w: %s", recipes.ErrRemoved, path)
			}
			return stat, err
		case errors.Is(err, zk.ErrNoNode):
			if err := s.ensure(ctx, gopath.Dir(path)); err != nil {
				return Stat{}, err
			}
		case lostConnection(err):
			if _, err := s.connectedAfter(life, now.connections); err != nil {
				return Stat{}, err
			}
			if err := s.Sync(life, path); err != nil && !errors.Is(err, recipes.ErrNoNode) {
				return Stat{}, err
			}
			stat, err := s.Stat(life, path)
			if err == nil && stat.EphemeralOwner == s.id && stat.Czxid > begun {
				return stat, nil
			}
			if err != nil && !errors.Is(err, recipes.ErrNoNode) {
				return Stat{}, err
			}
			// Known not to have happened, or undone by another hand.
		case life.Err() != nil:
			return Stat{}, s.Err()
		default:
			return Stat{}, answer("create", path, err)
		}
		if ctx.Err() != nil {
			return Stat{}, ctx.Err()
		}
	}
}

// DeleteOwned deletes the ephemeral znode that CreateNamed, or a protected
// creation, has made, on the terms of Delete. stat is the node's record as it
// was last known: a node of the same name that was created later is left alone.
//
// ZooKeeper cannot compare a czxid when it deletes. So the deletion names the
// version, and before it is sent again the node is looked at. What is left is a
// node that another hand has deleted, and a third has created again with as many
// changes, within the way of one request.
func (s *Session) DeleteOwned(path string, stat Stat) <-chan error {
	done := make(chan error, 1)
	if !s.Background(func(life context.Context) { done <- s.deleteOwned(life, path, stat) }) {
		done <- s.Err()
	}
	return done
}

func (s *Session) deleteOwned(life context.Context, path string, stat Stat) error {
	version, sent := stat.Version, false
	for {
		err := s.DeleteOnce(life, path, version)
		switch {
		case err == nil:
			return nil
		case s.Err() != nil:
			return s.Err()
		case errors.Is(err, recipes.ErrNoNode):
			if sent {
				return nil // the attempt whose reply was lost has done it
			}
			return err
		case !errors.Is(err, recipes.ErrUnknownOutcome) && !errors.Is(err, recipes.ErrBadVersion):
			s.log.Error("cannot delete own znode; it goes with the session", "path", path, "error", err)
			return err
		}
		sent = sent || errors.Is(err, recipes.ErrUnknownOutcome)
		now, err := s.Stat(life, path)
		switch {
		case s.Err() != nil:
			return s.Err()
		case errors.Is(err, recipes.ErrNoNode), err == nil && now.Czxid != stat.Czxid:
			if sent {
				return nil
			}
			return fmt.Errorf("delete %s: %w", path, recipes.ErrNoNode)
		case err != nil:
			return err
		}
		version = now.Version
	}
}

// DeletionW returns the record of a znode that cannot have children, with a watch
// that fires when it is deleted, and not when its data is changed: it watches
// the children that never come.
func (s *Session) DeletionW(ctx context.Context, path string) (Stat, *Watch, error) {
	read := func(_ []string, stat *Stat, err error) (Stat, error) {
		if err != nil {
			return Stat{}, err
		}
		return *stat, nil
	}
	return readWatched(ctx, s, "look at", path, watchKey{path: s.full(path), children: true},
		func(c *zk.Conn) (Stat, error) { return read(c.Children(s.full(path))) },
		func(c *zk.Conn) (Stat, error) {
			names, stat, _, err := c.ChildrenW(s.full(path))
			return read(names, stat, err)
		})
}

// names lets one call at a time create a node of a given path.
type names struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when the path is free again
}

func (n *names) take(ctx context.Context, path string) (release func(), err error) {
	for {
		n.mu.Lock()
		taken, ok := n.busy[path]
		if !ok {
			if n.busy == nil {
				n.busy = make(map[string]chan struct{})
			}
			free := make(chan struct{})
			n.busy[path] = free
			n.mu.Unlock()
			return func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				delete(n.busy, path)
				close(free)
			}, nil
		}
		n.mu.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
