package partition_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// transactionPatience is how long a client takes part in one transaction. A client that is
// cut off for longer leaves it undecided, and the test decides it at the end.
const transactionPatience = 20 * time.Second

// transactions takes part in a two-phase commit of all clients every few seconds. Each
// client begins every third transaction, and is a site of all of them.
func (c *worker) transactions() {
	var all sync.WaitGroup
	defer all.Wait()
	for c.ctx.Err() == nil {
		number := now() / int64(transactionRound)
		commits := c.random.IntN(8) > 0
		all.Go(func() {
			ctx, cancel := context.WithTimeout(c.ctx, transactionPatience) // after that the outcome is unknown
			defer cancel()
			path := fmt.Sprintf("/transactions/%d", number)
			tx := must(c.session.Transaction(path, recipes.TransactionConfig{}))
			if number%clients == int64(c.number) {
				c.lead(ctx, tx)
			}
			c.follow(ctx, tx, commits)
		})
		c.until((number + 1) * int64(transactionRound))
	}
}

// lead begins a transaction and coordinates it, in the background.
func (c *worker) lead(ctx context.Context, tx recipes.Transaction) {
	if c.do(message{Kind: begin, Path: tx.Path()}, func(*message) error { return tx.Begin(ctx, nil, sites()...) }) == nil {
		go c.decided(tx, func() (recipes.Decision, error) { return tx.Coordinate(ctx) })
	}
}

// follow is one site of a transaction.
func (c *worker) follow(ctx context.Context, tx recipes.Transaction, commits bool) {
	site, err := tx.Join(ctx, sites()[c.number])
	for errors.Is(err, recipes.ErrNoTransaction) && ctx.Err() == nil {
		c.until(now() + int64(50*time.Millisecond)) // no event reports that a transaction has begun
		site, err = tx.Join(ctx, sites()[c.number])
	}
	if err != nil {
		return
	}
	value, word := int64(0), recipes.VoteAbort
	if commits {
		value, word = 1, recipes.VoteCommit
	}
	c.do(message{Kind: vote, Path: tx.Path(), In: value}, func(*message) error { return site.Vote(ctx, word) })
	c.decided(tx, func() (recipes.Decision, error) { return site.Wait(ctx) })
}

// decided reports a decision to the test. A real party would act on it now.
func (c *worker) decided(tx recipes.Transaction, wait func() (recipes.Decision, error)) {
	d, err := wait()
	if err != nil {
		return
	}
	m := message{Kind: decision, Path: tx.Path()}
	if d.Commit {
		m.Out = 1
	}
	c.note(m)
}
