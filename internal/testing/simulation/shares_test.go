package simulation

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestSimulationOfShares simulates shares.
func TestSimulationOfShares(t *testing.T) {
	paths := sharePaths()
	simulateEach(t, number(40, 40)/20, // a run takes twice as long as those of other scenarios
		scenario{name: "shares", paths: paths, begin: shares},
		// The operator deletes candidates, and not numbers: see scenarios.
		scenario{name: "shares whose assigners are deleted", paths: paths, begin: shares, line: sharesPath + "/assigner", unwrapped: true},
		scenario{name: "shares through a plugin", paths: paths, begin: shares, open: openThroughPlugin, hop: true})
}

func sharePaths() (paths []string) {
	for i := range shareNumbers {
		paths = append(paths, fmt.Sprintf("%s/%d", sharesPath, i))
	}
	return paths
}

const (
	sharesPath   = "/shares"
	shareNumbers = 5
	shareGrace   = 300 * time.Millisecond
	// settleBound bounds how long the members take to settle after a change. The session of a
	// dead member must end, and all members must finish their work and read the assignment.
	settleBound = 3 * sessionTimeout
)

// division is what the members of a run own, as Portion.Changes reported.
type division struct {
	world *World

	mu      sync.Mutex
	present map[*client]map[int]bool
	changed time.Time // when a member has joined or left, or was lost
	calm    bool      // a member has waited since the end of faults
}

// shares has clients join and leave. Each number is checked like a lock with a journal of its own: one
// client owns it at a time, and its tokens grow. After the faults each turn ends when the members
// have settled: each number has one owner, and the parts differ by one at most.
func shares(w *World) game {
	d := &division{world: w, present: make(map[*client]map[int]bool)}
	return game{turn: d.turn}
}

func (d *division) turn(ctx context.Context, c *client, s recipes.Client) error {
	sh, err := s.Shares(sharesPath, shareNumbers, recipes.SharesConfig{Grace: shareGrace})
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	p, err := sh.Join(wait)
	if err != nil {
		return err
	}
	c.note("joined")
	d.report(c, map[int]bool{})
	m := &shareholder{client: c, session: s, grants: make(map[int]*grant)}
	err = d.stay(ctx, m, p)
	d.report(c, nil)
	m.keep(ctx, nil)
	if err != nil {
		return err
	}
	err = p.Leave(ctx)
	c.note("left: %v", err)
	return err
}

// stay owns numbers for a while. After the faults it owns them until the members have settled.
func (d *division) stay(ctx context.Context, m *shareholder, p recipes.Portion) error {
	end := time.Now().Add(m.client.chance.about(2 * time.Second))
	settled := false
	for {
		tick := time.NewTimer(50 * time.Millisecond)
		select {
		case list, ok := <-p.Changes():
			if !ok {
				return p.Err()
			}
			owned := make(map[int]bool)
			for _, share := range list {
				owned[share.Number()] = true
			}
			m.client.note("owns %v", owned)
			d.report(m.client, owned)
			m.keep(ctx, list)
		case <-tick.C:
		case <-p.Done():
			return p.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
		tick.Stop()
		calm := d.world.calm.Err() != nil
		switch {
		case !calm && time.Now().After(end), settled && time.Now().After(end):
			return nil
		case calm && !settled && d.settled(m.client):
			settled = true // stay for a while, so that the others see it
			end = time.Now().Add(m.client.chance.between(200*time.Millisecond, time.Second))
		}
	}
}

// report records what a client owns. nil means that it is not a member.
func (d *division) report(c *client, owned map[int]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if owned == nil || d.present[c] == nil {
		d.changed = time.Now()
	}
	if d.present[c] = owned; owned == nil {
		delete(d.present, c)
	}
}

// settled reports whether the members have settled. If they take too long, that is a violation.
func (d *division) settled(c *client) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.calm { // what the faults have delayed ends with them
		d.calm, d.changed = true, time.Now()
	}
	owners, least, most := make(map[int]int), shareNumbers, 0
	for _, owned := range d.present {
		for number := range owned {
			owners[number]++
		}
		least, most = min(least, len(owned)), max(most, len(owned))
	}
	sum := 0
	for _, n := range owners {
		sum += n
	}
	if len(owners) == shareNumbers && sum == shareNumbers && most-least <= 1 {
		return true
	}
	if time.Since(d.changed) > settleBound {
		text := ""
		for member, owned := range d.present {
			text += fmt.Sprintf(" %s: %v", member.name, owned)
		}
		d.world.fail(c.name, "not settled after %v:%s", settleBound, text)
		d.changed = time.Now() // once
	}
	return false
}

// shareholder acts on the numbers of a member.
type shareholder struct {
	client  *client
	session recipes.Client
	grants  map[int]*grant
}

// keep stops to act on numbers that are not in the list, and acts on those that are new. It
// leaves some of the first to the library, which gives them up after the grace.
func (m *shareholder) keep(ctx context.Context, list []recipes.Share) {
	now := make(map[int]recipes.Share)
	for _, share := range list {
		now[share.Number()] = share
	}
	for number := range shareNumbers {
		if g := m.grants[number]; g != nil && g.Grant != now[number] {
			m.client.world.ledger.leave(g)
			delete(m.grants, number)
			if m.client.chance.chance(70) {
				err := g.Grant.(recipes.Share).Release(ctx)
				m.client.note("released %s: %v", g.Znode(), err)
			}
		}
	}
	for _, share := range list {
		if m.grants[share.Number()] == nil {
			g := &grant{client: m.client, session: m.session, path: fmt.Sprintf("%s/%d", sharesPath, share.Number()), journaled: true, Grant: share}
			m.grants[share.Number()] = g
			m.client.world.ledger.enter(g, 1)
			m.client.work(ctx, g)
		}
	}
}
