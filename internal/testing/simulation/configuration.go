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

const configurationPath = "/configuration"

// keptKey is never deleted. Set does not distinguish a key from one that was deleted and
// made again between its look and its write (see recipes.Configuration), so only here
// each revision is replaced once.
const keptKey = "a"

// registry is what is known of a configuration, and what the operator sees of it.
type registry struct {
	world *World
	end   context.CancelFunc
	ended chan struct{}

	mu       sync.Mutex
	made     int
	values   map[recipes.Revision]string // that a change is known to have made
	replaced map[recipes.Revision]string // who is known to have changed each
	latest   []recipes.Entry
}

func configurations(w *World) game {
	r := &registry{world: w, ended: make(chan struct{}), values: make(map[recipes.Revision]string), replaced: make(map[recipes.Revision]string)}
	ctx, cancel := context.WithCancel(context.Background())
	r.end = cancel
	go r.watch(ctx)
	return game{r.turn, r.check}
}

// watch follows the tree until the end.
func (r *registry) watch(ctx context.Context) {
	defer close(r.ended)
	configuration, err := r.world.outside.Configuration(configurationPath)
	if err != nil {
		r.world.fail("operator", "%v", err)
		return
	}
	seen, err := configuration.WatchTree(ctx)
	if err != nil {
		r.world.fail("operator", "%v", err)
		return
	}
	for entries := range seen {
		r.mu.Lock()
		r.latest = entries
		r.mu.Unlock()
	}
	if ctx.Err() == nil {
		r.world.fail("operator", "the watch of the tree has ended: %v", r.world.outside.Err())
	}
}

// turn reads a key and changes what it has read, once.
func (r *registry) turn(ctx context.Context, c *client, s recipes.Client) error {
	configuration, err := s.Configuration(configurationPath)
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	key := pick(c.chance, keptKey, "b/c")
	e, err := configuration.Get(wait, key)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return err
	}
	r.read(c, e)
	_ = c.step(ctx, c.chance.about(20*time.Millisecond))
	if key != keptKey && !e.None() && c.chance.chance(20) {
		err = configuration.Delete(wait, key, e.Revision)
		c.note("deleted %s of revision %#x: %v", key, int64(e.Revision), err)
	} else {
		r.mu.Lock()
		r.made++
		value := fmt.Sprintf("%d by %s", r.made, c.name)
		r.mu.Unlock()
		revision, setErr := configuration.Set(wait, key, []byte(value), e.Revision)
		err = setErr
		c.note("set %s of revision %#x to %q, %#x: %v", key, int64(e.Revision), value, int64(revision), err)
		if key == keptKey {
			r.changed(c, e.Revision, err)
		}
		if err == nil && !c.isDead() {
			r.wrote(c, e.Revision, revision, value)
		}
	}
	for _, refused := range []error{recipes.ErrBadVersion, recipes.ErrNodeExists, recipes.ErrNoNode} {
		if errors.Is(err, refused) {
			return nil // somebody was quicker, or the server had not caught up
		}
	}
	return err
}

// read checks that a revision has the value that it was given.
func (r *registry) read(c *client, e recipes.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value, known := r.values[e.Revision]; known && value != string(e.Value) && !c.isDead() {
		r.world.fail(c.name, "read %q of revision %#x, which is %q", e.Value, int64(e.Revision), value)
	}
}

// changed checks that a revision is replaced once.
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

// wrote checks that revisions grow, and that each is of one change.
func (r *registry) wrote(c *client, before, after recipes.Revision, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after <= before {
		r.world.fail(c.name, "revision %#x came after %#x", int64(after), int64(before))
	}
	if other, known := r.values[after]; known {
		r.world.fail(c.name, "made revision %#x, which is %q", int64(after), other)
	}
	r.values[after] = value
}

// check compares the operator's watch with what is there in the end.
func (r *registry) check(ctx context.Context, operator recipes.Client) {
	configuration, err := operator.Configuration(configurationPath)
	if err != nil {
		r.world.fail("operator", "%v", err)
		return
	}
	same := func(a, b recipes.Entry) bool {
		return a.Key == b.Key && a.Revision == b.Revision && string(a.Value) == string(b.Value)
	}
	deadline := time.Now().Add(sessionTimeout)
	for {
		there, err := configuration.Snapshot(ctx)
		r.mu.Lock()
		seen := r.latest
		r.mu.Unlock()
		if err == nil && slices.EqualFunc(there, seen, same) {
			break
		}
		if time.Now().After(deadline) {
			r.world.fail("operator", "the watch shows %v, and there is %v (%v)", seen, there, err)
			break
		}
		_ = sleep(ctx, 50*time.Millisecond)
	}
	r.mu.Lock()
	for _, e := range r.latest {
		if other := r.replaced[e.Revision]; other != "" {
			r.world.fail("configuration", "%s has revision %#x, which %s has replaced", e.Key, int64(e.Revision), other)
		}
	}
	r.mu.Unlock()
	r.end()
	<-r.ended
}
