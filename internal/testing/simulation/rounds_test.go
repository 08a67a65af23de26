package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// rounds records the members of a double barrier in a dialect. Each member has a new name, so
// members of different rounds cannot be confused.
type rounds struct {
	world   *World
	dialect recipes.Dialect
	size    int

	mu     sync.Mutex
	parts  map[*client]bool  // clients that are in a turn
	ended  int               // turns that ended without a leave: the znode may exist
	inside map[string]*grant // members inside, by znode
}

func dialectRounds(w *World) game {
	r := &rounds{world: w, dialect: otherDialect(w), size: 2 + w.chance.below(2), parts: make(map[*client]bool), inside: make(map[string]*grant)}
	return game{turn: r.turn}
}

func (r *rounds) turn(ctx context.Context, c *client, s recipes.Client) error {
	wait, cancel := c.patience(ctx)
	defer cancel()
	r.mu.Lock()
	r.parts[c] = true
	before := r.ended
	r.mu.Unlock()
	take := r.ours
	if isStrange(c) {
		take = r.theirs
	}
	err := take(ctx, wait, c, s, before)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.parts, c)
	if err != nil {
		r.ended++
	}
	return err
}

func (r *rounds) ours(ctx, wait context.Context, c *client, s recipes.Client, before int) error {
	b, err := s.DoubleBarrier(dialectLine, recipes.DoubleBarrierConfig{Size: r.size, Dialect: r.dialect})
	if err != nil {
		return err
	}
	p, err := b.Enter(wait, nil)
	if err != nil {
		return err
	}
	r.enter(&grant{client: c, session: s, path: dialectLine, Grant: p}, p.Members(), before)
	_ = c.step(ctx, c.chance.about(200*time.Millisecond))
	r.forget(p.Znode())
	err = p.Leave(ctx)
	c.note("left %s: %v", p.Znode(), err)
	if err == nil {
		r.left(c, p.Members())
	}
	return err
}

// enter checks that our member does not enter with too few others. It counts the clients that are
// in a turn, and the turns that have failed since this one began: their znodes may exist.
func (r *rounds) enter(g *grant, members []string, before int) {
	g.client.note("entered as %s with %v", g.Znode(), members)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.parts) + r.ended - before; len(members) < r.size && n < r.size {
		r.world.fail(g.client.name, "entered as %s with %v; %d take part", g.Znode(), members, n)
	}
	r.inside[g.Znode()] = g
}

func (r *rounds) forget(znode string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inside, znode)
}

// left checks that none of the members that entered with the client is still inside.
func (r *rounds) left(c *client, members []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, znode := range members {
		if g := r.inside[znode]; g != nil && g.active() && !r.world.wasForced(g.session.ID()) {
			r.world.fail(c.name, "has left while %s is inside", znode)
		}
	}
}

// theirs takes the turn of a member as the other library implements it. A stale ready can let it
// enter too early. It creates ready in a transaction that checks its own znode. The library does
// not check. So the simulation assumes that a request which the library repeats cannot create ready
// after the member's znode is deleted.
func (r *rounds) theirs(ctx, wait context.Context, c *client, s recipes.Client, _ int) error {
	raw := s.(*rawSession)
	if err := raw.ensure(dialectLine); err != nil {
		return rawError(err)
	}
	id := fmt.Sprintf("%08x%024x", c.chance.below(1<<30), c.chance.below(1<<30))
	if r.dialect == recipes.Curator {
		id = strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
	}
	own := dialectLine + "/" + id
	err := r.await(ctx, wait, c, raw, own)
	if err != nil {
		_ = remove(ctx, raw, own)
		return rawError(err)
	}
	c.note("entered as %s", own)
	r.mu.Lock()
	r.inside[own] = &grant{client: c, session: s, Grant: &rawGrant{session: raw, path: own, holds: func() bool { return c.world.exists(own) }}}
	r.mu.Unlock()
	_ = c.step(ctx, c.chance.about(200*time.Millisecond))
	r.forget(own)
	return rawError(r.leave(ctx, raw, own))
}

const roundReady = dialectLine + "/ready"

func (r *rounds) await(ctx, wait context.Context, c *client, s *rawSession, own string) error {
	late := r.dialect == recipes.Kazoo // kazoo's member reads ready after it has created its znode
	var there bool
	var made <-chan zk.Event
	var err error
	if !late {
		if there, _, made, err = s.ExistsW(roundReady); err != nil {
			return err
		}
	}
	for {
		_, err = s.Create(own, nil, zk.FlagEphemeral, s.acl)
		if errors.Is(err, zk.ErrNodeExists) {
			err = nil // this is the member's own znode, whose create got no reply
		}
		if err == nil || !failed(err) || sleep(wait, retryPause) != nil {
			break
		}
	}
	if err == nil && late {
		_, _, made, err = s.ExistsW(roundReady)
	}
	if err != nil || there {
		return err // Curator's member enters at once if ready exists
	}
	names, _, err := s.Conn.Children(dialectLine)
	if err != nil {
		return err
	}
	if len(names) >= r.size {
		_, err := s.Multi(&zk.CheckVersionRequest{Path: own, Version: -1}, &zk.CreateRequest{Path: roundReady, Acl: s.acl})
		if errors.Is(err, zk.ErrNodeExists) {
			return nil
		}
		return err
	}
	for {
		select {
		case e := <-made:
			if e.Type == zk.EventNodeCreated {
				return nil
			}
			return errors.New("the watched ready was deleted, or the connection is lost")
		case <-wait.Done():
			return wait.Err()
		case <-time.After(sessionTimeout):
			if there, _, err := s.Exists(own); err != nil || !there {
				return errors.Join(err, zk.ErrNoNode)
			}
		}
	}
}

func (r *rounds) leave(ctx context.Context, s *rawSession, own string) error {
	if r.dialect == recipes.Kazoo {
		if err := remove(ctx, s, roundReady); err != nil {
			return err
		}
	}
	for {
		names, _, err := s.Conn.Children(dialectLine)
		if failed(err) && sleep(ctx, retryPause) == nil {
			continue
		}
		if err != nil {
			return err
		}
		if r.dialect == recipes.Curator {
			names = slices.DeleteFunc(names, func(name string) bool { return name == "ready" })
		}
		slices.Sort(names)
		me := slices.Index(names, own[len(dialectLine)+1:])
		if len(names) == 0 {
			break
		}
		target := names[0]
		switch {
		case me == 0 && len(names) > 1:
			target = names[len(names)-1]
		case me >= 0:
			if err := remove(ctx, s, own); err != nil {
				return err
			}
		}
		if len(names) == 1 {
			break
		}
		there, _, gone, err := s.ExistsW(dialectLine + "/" + target)
		if failed(err) && sleep(ctx, retryPause) == nil || err == nil && !there {
			continue
		}
		if err == nil {
			err = await(ctx, gone)
		}
		if err != nil {
			return err
		}
	}
	if r.dialect == recipes.Curator {
		return remove(ctx, s, roundReady)
	}
	return nil
}
