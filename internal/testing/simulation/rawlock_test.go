package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// rawLock is the lock of the source text with one of its well-known mistakes.
type rawLock struct {
	again   bool                          // a create without a reply is repeated
	byName  bool                          // the wait queue is sorted by whole names
	blind   bool                          // it waits for an event although the predecessor does not exist
	resumes bool                          // it waits for the end of a suspension, and then continues
	holds   func(*rawSession) func() bool // see rawGrant
}

// byEvents assumes that the lock is held until an event of the client reports an expiry.
func byEvents(s *rawSession) func() bool {
	_, _, began := s.now()
	return func() bool { _, _, now := s.now(); return now == began }
}

// fromSuspension assumes that the lock is held for the session timeout after the loss of the
// connection, which is later than the last contact (CURATOR-460).
func fromSuspension(s *rawSession) func() bool {
	_, _, began := s.now()
	return func() bool {
		state, since, now := s.now()
		return now == began && (state == zk.StateHasSession || time.Since(since) < sessionTimeout)
	}
}

func (l rawLock) game(*World) game { return game{turn: rawTurn("/lock", l.turn)} }

func (l rawLock) turn(ctx context.Context, c *client, raw *rawSession) error {
	const path = "/lock"
	own, err := l.join(ctx, raw, path, fmt.Sprintf("%08x", c.chance.below(1<<30)), "-lock-")
	if err != nil {
		return rawError(err)
	}
	c.note("joined as %s", own)
	var stat *zk.Stat
	if err = l.wait(ctx, raw, path, own); err == nil {
		_, stat, err = raw.Get(own)
	}
	if err != nil {
		_ = remove(ctx, raw, own)
		return rawError(err)
	}
	g := &grant{client: c, session: raw, path: path, journaled: true, Grant: &rawGrant{
		session: raw, path: own, token: recipes.Token(stat.Czxid), holds: l.holds(raw),
	}}
	if l.resumes {
		l.awaitConnection(ctx, raw, g)
	}
	return c.hold(ctx, g, 1, func(context.Context) error { return rawError(remove(ctx, raw, own)) })
}

// awaitConnection writes while the session is connected, and waits while it is not.
func (l rawLock) awaitConnection(ctx context.Context, s *rawSession, g *grant) {
	for range 4 {
		if sleep(ctx, 200*time.Millisecond) != nil {
			return
		}
		for state, _, _ := s.now(); state != zk.StateHasSession; state, _, _ = s.now() {
			if sleep(ctx, retryPause) != nil {
				return
			}
		}
		_ = g.Write(ctx, recipes.Create(g.entry(), nil))
	}
}

func remove(ctx context.Context, s *rawSession, path string) error {
	for {
		err := s.Delete(path, -1)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if !failed(err) || sleep(ctx, retryPause) != nil {
			return err
		}
	}
}

// retryPause is the pause between attempts. Without it virtual time would not pass.
const retryPause = 20 * time.Millisecond

// join creates the contender's znode.
func (l rawLock) join(ctx context.Context, s *rawSession, path, id, marker string) (string, error) {
	for {
		own, err := s.Create(path+"/"+id+marker, nil, zk.FlagEphemeral|zk.FlagSequence, s.acl)
		if err == nil || !failed(err) || sleep(ctx, retryPause) != nil {
			return own, err
		}
		if l.again {
			continue
		}
		if own, err = l.find(ctx, s, path, id); own != "" || err != nil {
			return own, err
		}
	}
}

// find finds the znode of a create that got no reply.
func (l rawLock) find(ctx context.Context, s *rawSession, path, id string) (string, error) {
	for {
		_, err := s.Sync(path) // a server that lags does not list it yet
		var children []string
		if err == nil {
			children, _, err = s.Conn.Children(path)
		}
		if failed(err) && sleep(ctx, retryPause) == nil {
			continue
		}
		if err != nil {
			return "", err
		}
		for _, child := range children {
			if !strings.HasPrefix(child, id) {
				continue
			}
			_, stat, err := s.Get(path + "/" + child)
			switch {
			case err == nil && stat.EphemeralOwner == s.SessionID():
				return path + "/" + child, nil
			case failed(err):
				return l.find(ctx, s, path, id)
			}
		}
		return "", nil
	}
}

// wait waits until the contender is first.
func (l rawLock) wait(ctx context.Context, s *rawSession, path, own string) error {
	for {
		children, _, err := s.Conn.Children(path)
		if failed(err) && sleep(ctx, retryPause) == nil {
			continue
		}
		if err != nil {
			return err
		}
		slices.SortFunc(children, func(a, b string) int {
			if l.byName {
				return cmp.Compare(a, b)
			}
			return cmp.Compare(a[len(a)-10:], b[len(b)-10:])
		})
		i := slices.Index(children, own[len(path)+1:])
		if i < 0 {
			return zk.ErrNoNode
		}
		if i == 0 {
			return nil
		}
		there, _, gone, err := s.ExistsW(path + "/" + children[i-1])
		if failed(err) && sleep(ctx, retryPause) == nil {
			continue
		}
		if err != nil {
			return err
		}
		if !there && !l.blind {
			continue
		}
		again := time.NewTimer(sessionTimeout) // a lost connection loses its watches
		if l.blind {
			again.Stop()
		}
		select {
		case <-gone:
			again.Stop()
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return ctx.Err()
		}
	}
}

// libraryLockTurn uses go-zookeeper's own Lock, which does not notice a loss.
func libraryLockTurn(ctx context.Context, c *client, s recipes.Client) error {
	const path = "/lock"
	raw := s.(*rawSession)
	l := zk.NewLock(raw.Conn, path, raw.acl)
	if err := l.Lock(); err != nil {
		return rawError(err)
	}
	// Lock returns neither znode nor token. They are those of the first contender.
	children, _, err := raw.Conn.Children(path)
	if err != nil || len(children) == 0 {
		return rawError(cmp.Or(err, zk.ErrNoNode))
	}
	first := slices.MinFunc(children, func(a, b string) int { return cmp.Compare(a[len(a)-10:], b[len(b)-10:]) })
	_, stat, err := raw.Get(path + "/" + first)
	if err != nil {
		return rawError(err)
	}
	g := &grant{client: c, session: s, path: path, journaled: true, Grant: &rawGrant{
		session: raw, path: path + "/" + first, token: recipes.Token(stat.Czxid), holds: func() bool { return true },
	}}
	return c.hold(ctx, g, 1, func(context.Context) error { return rawError(l.Unlock()) })
}
