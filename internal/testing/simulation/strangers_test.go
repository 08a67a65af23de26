package simulation

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// stranger contends as Curator or kazoo does: with the same names, in the same order, and it waits
// for the same znodes. How those libraries notice a loss is not simulated: a stranger acts on a
// grant for as long as its znode exists.
type stranger struct {
	dialect recipes.Dialect
	markers []string // of all contenders
	readers string   // the marker of contenders that share
}

// blocks reports whether a contender with the marker mine waits for one with the marker other that
// is ahead.
func (l stranger) blocks(mine, other string) bool {
	return slices.Contains(l.markers, other) && (l.readers == "" || mine != l.readers || other != l.readers)
}

// split returns the marker and the number in a contender's name.
func (l stranger) split(name string) (marker string, number int32, ok bool) {
	for _, m := range l.markers {
		if at := strings.LastIndex(name, m); at >= 0 {
			n, err := strconv.ParseInt(name[at+len(m):], 10, 32)
			return m, int32(n), err == nil
		}
	}
	return "", 0, false
}

// name returns the start of a znode's name. The library finds the znode again by it.
func (l stranger) name(c *client) string {
	id := fmt.Sprintf("%08x%024x", c.chance.below(1<<30), c.number)
	if l.dialect == recipes.Kazoo {
		return id
	}
	return fmt.Sprintf("_c_%s-%s-%s-%s-%s-", id[:8], id[8:12], id[12:16], id[16:20], id[20:])
}

// turn joins the wait queue at path, acts on the grant, and releases it.
func (l stranger) turn(ctx context.Context, c *client, s recipes.Client, path, marker string) error {
	own, err := l.lock(ctx, c, s.(*rawSession), path, marker)
	if err != nil {
		return err
	}
	return l.hold(ctx, c, s.(*rawSession), path, own, marker == l.readers && l.readers != "", 1)
}

// lock joins the wait queue and waits for its turn.
func (l stranger) lock(ctx context.Context, c *client, raw *rawSession, path, marker string) (own string, err error) {
	if err := raw.ensure(path); err != nil {
		return "", rawError(err)
	}
	own, err = rawLock{}.join(ctx, raw, path, l.name(c), marker)
	if err != nil {
		return "", rawError(err)
	}
	c.note("joined as %s", own)
	wait, cancel := c.patience(ctx)
	defer cancel()
	if err := l.wait(wait, raw, path, own, marker); err != nil {
		_ = remove(ctx, raw, own)
		return "", rawError(err)
	}
	return own, nil
}

// wait waits until no contender blocks it.
func (l stranger) wait(ctx context.Context, s *rawSession, path, own, marker string) error {
	_, me, _ := l.split(own)
	for {
		names, _, err := s.Conn.Children(path)
		if failed(err) && sleep(ctx, retryPause) == nil {
			continue
		}
		if err != nil {
			return err
		}
		if !slices.Contains(names, own[len(path)+1:]) {
			return zk.ErrNoNode
		}
		nearest, at := "", int32(0)
		for _, name := range names {
			kind, n, ok := l.split(name)
			if ok && me-n > 0 && l.blocks(marker, kind) && (nearest == "" || n-at > 0) {
				nearest, at = name, n
			}
		}
		if nearest == "" {
			return nil
		}
		there, _, gone, err := s.ExistsW(path + "/" + nearest)
		if failed(err) && sleep(ctx, retryPause) == nil || err == nil && !there {
			continue
		}
		if err != nil {
			return err
		}
		if err := await(ctx, gone); err != nil {
			return err
		}
	}
}

// await waits for an event, at most for the session timeout, because a lost connection loses
// events.
func await(ctx context.Context, event <-chan zk.Event) error {
	late := time.NewTimer(sessionTimeout)
	defer late.Stop()
	select {
	case <-event:
	case <-late.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// hold acts on a grant, and releases it.
func (l stranger) hold(ctx context.Context, c *client, s *rawSession, path, own string, shared bool, permits int) error {
	_, stat, err := s.Get(own)
	if err != nil {
		_ = remove(ctx, s, own)
		return rawError(err)
	}
	g := &grant{client: c, session: s, path: path, shared: shared, Grant: strangersGrant{&rawGrant{
		session: s, path: own, token: recipes.Token(stat.Czxid), holds: func() bool { return c.world.exists(own) },
	}}}
	return c.hold(ctx, g, permits, func(context.Context) error { return rawError(remove(ctx, s, own)) })
}

// strangersGrant has no guard, so it writes nothing.
type strangersGrant struct{ *rawGrant }

func (strangersGrant) Write(context.Context, ...recipes.Op) error { return nil }

// permit takes a turn with a semaphore. The client creates a lease while it holds a lock.
func (l stranger) permit(ctx context.Context, c *client, s recipes.Client, permits int) error {
	const path = "/line"
	raw := s.(*rawSession)
	lock, leases := path+"/locks", path+"/leases"
	if l.dialect == recipes.Kazoo {
		lock, leases = path+"-__lock__", path
	}
	for _, p := range []string{path, leases} {
		if err := raw.ensure(p); err != nil {
			return rawError(err)
		}
	}
	turn, err := l.lock(ctx, c, raw, lock, l.markers[0])
	if err != nil {
		return err
	}
	lease, err := l.lease(ctx, c, raw, turn, leases, permits)
	_ = remove(ctx, raw, turn)
	if err != nil {
		if lease != "" {
			_ = remove(ctx, raw, lease)
		}
		return rawError(err)
	}
	return l.hold(ctx, c, raw, path, lease, false, permits)
}

// lease creates a lease in a transaction that checks the lock. The libraries do not check, so the
// simulation assumes that they hold the lock.
func (l stranger) lease(ctx context.Context, c *client, s *rawSession, turn, leases string, permits int) (lease string, err error) {
	take := func() (string, error) {
		id := l.name(c)
		name, flags := leases+"/"+id, int32(zk.FlagEphemeral)
		if l.dialect == recipes.Curator {
			name, flags = name+"lease-", zk.FlagEphemeral|zk.FlagSequence
		}
		made, err := s.Multi(&zk.CheckVersionRequest{Path: turn, Version: -1}, &zk.CreateRequest{Path: name, Acl: s.acl, Flags: flags})
		if failed(err) { // the lease may exist
			if made, found := (rawLock{}).find(ctx, s, leases, id); made != "" || found != nil {
				return made, found
			}
		}
		if err != nil {
			return "", err
		}
		return made[1].String, nil
	}
	most := permits - 1
	if l.dialect == recipes.Curator {
		if lease, err = take(); err != nil {
			return "", err
		}
		most = permits
	}
	for {
		names, _, changed, err := s.ChildrenW(leases)
		if failed(err) && sleep(ctx, retryPause) == nil {
			continue
		}
		if err == nil && len(names) <= most {
			break
		}
		if err == nil {
			err = await(ctx, changed)
		}
		if there, _, unread := s.Exists(turn); err == nil && unread == nil && !there {
			err = zk.ErrNoNode // the client no longer holds the lock
		}
		if err != nil {
			return lease, err
		}
	}
	if l.dialect == recipes.Curator {
		return lease, nil
	}
	return take()
}
