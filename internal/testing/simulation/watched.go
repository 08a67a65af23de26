package simulation

import (
	"context"
	"errors"
	"fmt"
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

const configurationPath = "/configuration"

// registry is what the calls have shown of a configuration, and the operator's watch of it.
type registry struct {
	world *World
	seen  *watched[[]recipes.Entry]

	mu       sync.Mutex
	made     int
	values   map[recipes.Revision]string // that are known
	replaced map[recipes.Revision]string // client that is known to have replaced the revision
}

func configurations(w *World) game {
	r := &registry{world: w, values: make(map[recipes.Revision]string), replaced: make(map[recipes.Revision]string)}
	r.seen = watch(w, func(ctx context.Context) (<-chan []recipes.Entry, error) {
		configuration, err := w.outside.Configuration(configurationPath)
		if err != nil {
			return nil, err
		}
		return configuration.WatchTree(ctx)
	})
	return game{r.turn, r.check}
}

// turn reads a key and changes it.
func (r *registry) turn(ctx context.Context, c *client, s recipes.Client) error {
	configuration, err := s.Configuration(configurationPath)
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	key := pick(c.chance, "a", "b/c")
	e, err := configuration.Get(wait, key)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return err
	}
	r.read(c, e)
	_ = c.step(ctx, c.chance.about(20*time.Millisecond))
	if !e.None() && c.chance.chance(30) {
		err = configuration.Delete(wait, key, e.Revision)
		c.note("deleted %s of revision %#x: %v", key, int64(e.Revision), err)
		r.changed(c, e.Revision, err)
	} else {
		r.mu.Lock()
		r.made++
		value := fmt.Sprintf("%d by %s", r.made, c.name)
		r.mu.Unlock()
		revision, setErr := configuration.Set(wait, key, []byte(value), e.Revision)
		err = setErr
		c.note("set %s of revision %#x to %q, %#x: %v", key, int64(e.Revision), value, int64(revision), err)
		r.changed(c, e.Revision, err)
		if err == nil && !c.isDead() {
			r.wrote(c, e.Revision, revision, value)
		}
	}
	for _, refused := range []error{recipes.ErrBadVersion, recipes.ErrNodeExists, recipes.ErrNoNode} {
		if errors.Is(err, refused) {
			return nil // another client was faster, or the server lags
		}
	}
	return err
}

// read checks that a revision has its known value.
func (r *registry) read(c *client, e recipes.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value, known := r.values[e.Revision]; known && value != string(e.Value) && !c.isDead() {
		r.world.fail(c.name, "read %q of revision %#x, which is %q", e.Value, int64(e.Revision), value)
	}
}

// changed checks that each revision is replaced, or deleted, once.
func (r *registry) changed(c *client, revision recipes.Revision, err error) {
	if err != nil || c.isDead() || revision == recipes.NoRevision {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.replaced[revision]; other != "" {
		r.world.fail(c.name, "has replaced revision %#x, as %s has", int64(revision), other)
	}
	r.replaced[revision] = c.name
}

// wrote checks that revisions grow, and that each belongs to one change.
func (r *registry) wrote(c *client, before, after recipes.Revision, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after <= before {
		r.world.fail(c.name, "revision %#x came after %#x", int64(after), int64(before))
	}
	if other, known := r.values[after]; known {
		r.world.fail(c.name, "created revision %#x, which is %q", int64(after), other)
	}
	r.values[after] = value
}

// check compares the operator's watch with the final state.
func (r *registry) check(ctx context.Context, operator recipes.Client) {
	configuration, err := operator.Configuration(configurationPath)
	if err != nil {
		r.world.fail("operator", "%v", err)
		return
	}
	same := func(a, b recipes.Entry) bool {
		return a.Key == b.Key && a.Revision == b.Revision && string(a.Value) == string(b.Value)
	}
	var there []recipes.Entry
	if !r.seen.await(ctx, sessionTimeout, func() bool {
		there, err = configuration.Snapshot(ctx)
		return err == nil && slices.EqualFunc(there, r.seen.shows(), same)
	}) {
		r.world.fail("operator", "the watch shows %v; the state is %v (%v)", r.seen.shows(), there, err)
	}
	r.mu.Lock()
	for _, e := range r.seen.shows() {
		if other := r.replaced[e.Revision]; other != "" {
			r.world.fail("configuration", "%s has revision %#x, which %s has replaced", e.Key, int64(e.Revision), other)
		}
	}
	r.mu.Unlock()
	r.seen.stop()
}
