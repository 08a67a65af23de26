package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// txRounds are the transactions of a run, one after the other. The first client begins them. All
// clients are sites.
type txRounds struct {
	world *World

	mu      sync.Mutex
	current *txRound
	begun   int
}

// txRound is one transaction, with the decisions that its sites have received.
type txRound struct {
	path     string
	variant  recipes.Variant
	sites    []string
	begun    bool
	refused  map[string]bool // sites that will vote to abort
	agreed   map[string]bool // sites that may have voted to commit in some session
	decision map[string]bool // what each site has learned: true to commit
	acted    map[string]bool // sites that have called Done, perhaps without success
	done     map[string]bool // sites that need no further turn
}

func transactions(w *World) game {
	d := &txRounds{world: w}
	return game{turn: d.turn}
}

var errIdle = fmt.Errorf("nothing to do: %w", context.Canceled)

// next returns the current transaction. When all its sites have finished, the first client makes
// the next one.
func (d *txRounds) next(c *client) *txRound {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.current; t != nil && len(t.done) < len(t.sites) {
		if t.done[c.name] {
			return nil
		}
		return t
	}
	if c.number != 1 {
		return nil
	}
	d.begun++
	t := &txRound{
		path: fmt.Sprintf("/tx-%d", d.begun), variant: pick(c.chance, recipes.Variants()...),
		refused: make(map[string]bool), agreed: make(map[string]bool), decision: make(map[string]bool), acted: make(map[string]bool), done: make(map[string]bool),
	}
	for i := range d.world.clients {
		name := fmt.Sprintf("client %d", i+1)
		t.sites = append(t.sites, name)
		t.refused[name] = c.chance.chance(10)
	}
	d.current = t
	return t
}

func (d *txRounds) turn(ctx context.Context, c *client, s recipes.Client) error {
	t := d.next(c)
	if t == nil {
		return errIdle
	}
	tx, err := s.Transaction(t.path, recipes.TransactionConfig{Variant: t.variant})
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	if c.number == 1 && !d.is(&t.begun) {
		err := tx.Begin(wait, nil, t.sites...)
		c.note("began %s (%s): %v", t.path, t.variant, err)
		if err != nil && !errors.Is(err, recipes.ErrNodeExists) {
			return err
		}
		d.set(&t.begun)
	}
	if !d.is(&t.begun) {
		return errIdle
	}
	if c.number == 1 {
		var coordinating sync.WaitGroup
		defer coordinating.Wait()
		coordinate, done := context.WithCancel(wait)
		defer done()
		coordinating.Go(func() {
			if decision, err := tx.Coordinate(coordinate); err == nil {
				d.learned(t, c, "coordinator", decision)
			}
		})
	}
	return d.serve(wait, c, t, tx)
}

func (d *txRounds) is(what *bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *what
}

func (d *txRounds) set(what *bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*what = true
}

// serve plays the part of a site: it joins, votes, waits for the decision and calls Done.
func (d *txRounds) serve(ctx context.Context, c *client, t *txRound, tx recipes.Transaction) error {
	site, err := tx.Join(ctx, c.name)
	switch {
	case errors.Is(err, recipes.ErrNoTransaction):
		return d.missing(c, t)
	case errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrSessionLost):
		// With own nodes: the site has joined in another session, which may still vote. If
		// that session ends, the transaction aborts, and Join then succeeds.
		c.note("is a site of %s in another session", t.path)
		return errIdle
	case err != nil:
		return err
	}
	_ = c.step(ctx, c.chance.about(50*time.Millisecond))
	vote := recipes.VoteCommit
	if t.refused[c.name] {
		vote = recipes.VoteAbort
	}
	if vote == recipes.VoteCommit {
		d.mu.Lock()
		t.agreed[c.name] = true
		d.mu.Unlock()
	}
	err = site.Vote(ctx, vote)
	c.note("voted %s in %s: %v", vote, t.path, err)
	switch {
	case errors.Is(err, recipes.ErrNoTransaction):
		return d.missing(c, t)
	case errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrSessionLost):
		// With own nodes: the site is dead, and must still learn the decision.
	case err != nil:
		return err
	}
	decision, err := site.Wait(ctx)
	if errors.Is(err, recipes.ErrNoTransaction) {
		return d.missing(c, t)
	}
	if err != nil {
		return err
	}
	d.learned(t, c, c.name, decision)
	return d.act(ctx, c, t, site)
}

// act calls Done.
func (d *txRounds) act(ctx context.Context, c *client, t *txRound, site recipes.Site) error {
	d.mu.Lock()
	t.acted[c.name] = true
	d.mu.Unlock()
	err := site.Done(ctx)
	c.note("done with %s: %v", t.path, err)
	if errors.Is(err, recipes.ErrNoTransaction) {
		err = nil
	}
	if err == nil && !c.isDead() {
		d.finish(c, t)
	}
	return err
}

func (d *txRounds) finish(c *client, t *txRound) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.done[c.name] = true
}

// learned records a decision. It checks that all learn the same one, and that the transaction
// commits only if all sites may have voted to commit.
func (d *txRounds) learned(t *txRound, c *client, who string, decision recipes.Decision) {
	c.note("%s of %s: commit %v (%s)", who, t.path, decision.Commit, decision.Reason)
	d.mu.Lock()
	defer d.mu.Unlock()
	for other, commit := range t.decision {
		if commit != decision.Commit {
			d.world.fail(c.name, "%s of %s learned commit %v, and %s learned %v", who, t.path, decision.Commit, other, commit)
		}
	}
	t.decision[who] = decision.Commit
	for _, site := range t.sites {
		if !t.agreed[site] && decision.Commit {
			d.world.fail(c.name, "%s commits, and %s has not voted to commit", t.path, site)
		}
	}
}

// missing handles a transaction that does not exist. The client must have called Done.
func (d *txRounds) missing(c *client, t *txRound) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !t.acted[c.name] {
		d.world.fail(c.name, "%s does not exist, and this site has not called Done", t.path)
	}
	t.done[c.name] = true
	return nil
}
