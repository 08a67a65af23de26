package simulation

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

const groupPath = "/group"

// gathering records the tokens of a group's members, and has the operator's watch of it.
type gathering struct {
	world *World
	seen  *watched[[]recipes.Member]

	mu     sync.Mutex
	tokens map[recipes.Token]string // client that received the token
}

func groups(w *World) game {
	g := &gathering{world: w, tokens: make(map[recipes.Token]string)}
	g.seen = watch(w, func(ctx context.Context) (<-chan []recipes.Member, error) {
		group, err := w.outside.Group(groupPath, recipes.GroupConfig{})
		if err != nil {
			return nil, err
		}
		return group.Watch(ctx)
	})
	return game{g.turn, g.check}
}

// turn joins and leaves. It checks that the member is listed after the join, and not after the
// leave.
func (g *gathering) turn(ctx context.Context, c *client, s recipes.Client) error {
	group, err := s.Group(groupPath, recipes.GroupConfig{})
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	m, err := group.Join(wait, []byte(c.name))
	if err != nil {
		return err
	}
	c.note("joined as %s", m.Znode())
	g.mu.Lock()
	if other := g.tokens[m.Token()]; other != "" && !c.isDead() {
		g.world.fail(c.name, "received the token of %s", other)
	}
	g.tokens[m.Token()] = c.name
	g.mu.Unlock()
	g.checkListed(ctx, c, s, group, m, true)
	_ = c.step(ctx, c.chance.about(200*time.Millisecond))
	if c.chance.chance(30) {
		c.note("updated: %v", m.Update(ctx, []byte("again")))
	}
	err = m.Leave(ctx)
	c.note("left %s: %v", m.Znode(), err)
	if err == nil {
		g.checkListed(ctx, c, s, group, m, false)
	}
	return err
}

// checkListed checks whether the member is listed. A session reads its own writes.
func (g *gathering) checkListed(ctx context.Context, c *client, s recipes.Session, group recipes.Group, m recipes.Membership, there bool) {
	members, err := group.Members(ctx)
	if err != nil || c.isDead() || g.world.wasForced(s.ID()) {
		return
	}
	listed := slices.ContainsFunc(members, func(other recipes.Member) bool { return other.Token == m.Token() })
	if listed != there && s.Err() == nil && (!there || m.Err() == nil) {
		g.world.fail(c.name, "%s is listed: %v", m.Znode(), listed)
	}
}

// check waits until the operator's watch has shown that all members have left.
func (g *gathering) check(ctx context.Context, _ recipes.Client) {
	if !g.seen.await(ctx, 2*sessionTimeout, func() bool { return len(g.seen.shows()) == 0 }) {
		g.world.fail("operator", "the watch shows %d members after all have left", len(g.seen.shows()))
	}
	g.seen.stop()
}
