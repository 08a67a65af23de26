package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// CreateNamed creates an ephemeral znode of exactly this path and returns its record. It
// creates missing parents like CreateProtected. If the path exists, the error matches
// ErrNodeExists, even if this session owns the znode.
//
// The name contains no GUID. So after a lost reply, CreateNamed recognizes its znode by the
// owner, this session, and by a czxid that is larger than the last transaction id seen when the
// call began. Earlier creations of this session do not have a larger one. Only one call per path
// runs at a time in a session.
//
// On error no znode remains, in the sense of CreateProtected.
func (s *Session) CreateNamed(ctx context.Context, path string, data []byte) (Stat, error) {
	return s.CreateNamedIn(ctx, path, data, s.Ensure)
}

// CreateNamedIn is CreateNamed with the function that creates a missing parent: Ensure or
// Provide.
func (s *Session) CreateNamedIn(ctx context.Context, path string, data []byte, parent func(context.Context, string) error) (Stat, error) {
	if err := s.fits(path, data, packetSlack); err != nil {
		return Stat{}, err
	}
	// A creation that is being undone also has the name, so the next call waits for it.
	release, err := s.names.take(ctx, path)
	if err != nil {
		return Stat{}, s.Interrupted("create "+path, ctx)
	}
	begun := s.wire.LastZxid()
	c := &creation[Stat]{path: path, parent: parent, made: func([]conn.Reply) (none Stat, _ error) { return }} // the reply does not contain the record
	c.exchange = exchange{session: s, requests: []conn.Request{conn.Create(s.full(path), data, conn.Ephemeral, s.acl)}}
	c.find = func(life context.Context) (*Stat, error) {
		if _, _, err := s.connectedAfter(life, c.connection); err != nil {
			return nil, err
		}
		stat, err := s.syncedStat(life, path)
		switch {
		case stat.EphemeralOwner == s.id && stat.Czxid > begun:
			return &stat, nil
		case errors.Is(err, recipes.ErrNoNode):
			return nil, nil
		}
		return nil, err
	}
	return detached(ctx, s, "create "+path, func(life context.Context) (Stat, error) {
		stat, err := c.run(ctx, life)
		if err != nil || stat != (Stat{}) {
			return stat, err
		}
		stat, err = RetryThrottled(life, s, func() (Stat, error) { return s.Stat(life, path) })
		if errors.Is(err, recipes.ErrNoNode) || err == nil && stat.EphemeralOwner != s.id {
			return Stat{}, fmt.Errorf("%w: %s", recipes.ErrRemoved, path)
		}
		return stat, err
	}, func(life context.Context, stat Stat) { s.deleteOwned(life, path, stat) }, release)
}

func (s *Session) syncedStat(ctx context.Context, path string) (Stat, error) {
	if err := s.Sync(ctx, path); err != nil {
		return Stat{}, err
	}
	return s.Stat(ctx, path)
}

// names serializes the creations of one path.
type names struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when the path is free
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
