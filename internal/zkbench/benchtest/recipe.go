package benchtest

import (
	"context"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// place is what a lock and an election have in common.
type place struct {
	session  *session
	path     string
	strategy recipes.Strategy
	joined   func(recipes.Place)
}

func (p place) Path() string { return p.path }

// enter joins the line and waits.
func (p place) enter(ctx context.Context) (*grant, error) {
	c, position := p.session.server.join(p.session, p.path, p.strategy)
	if p.joined != nil {
		p.joined(recipes.Place{Znode: c.znode, Position: position})
	}
	g := &grant{contender: c, lost: make(chan struct{})}
	select {
	case <-c.granted:
		return g, nil
	case <-ctx.Done():
		p.session.server.leave(c)
		return nil, ctx.Err()
	case <-p.session.lost:
		p.session.server.leave(c)
		return nil, recipes.ErrClosed
	}
}

// grant is a recipes.Hold and a recipes.Leadership.
type grant struct {
	contender *contender
	lost      chan struct{}
	once      sync.Once
	err       error
}

func (g *grant) Token() recipes.Token  { return g.contender.token }
func (g *grant) Znode() string         { return g.contender.znode }
func (g *grant) Done() <-chan struct{} { return g.lost }

func (g *grant) Err() error {
	select {
	case <-g.lost:
		return recipes.ErrReleased
	default:
		return nil
	}
}

func (g *grant) Write(context.Context, ...recipes.Op) error { return errNotHere("Write") }
func (g *grant) Acknowledge(context.Context, []byte) error  { return errNotHere("Acknowledge") }
func (g *grant) Resign(ctx context.Context) error           { return g.Release(ctx) }
func (g *grant) Release(context.Context) error {
	g.once.Do(func() {
		close(g.lost)
		if !g.contender.session.server.leave(g.contender) {
			g.err = recipes.ErrNotHeld
			if err := g.contender.session.Err(); err != nil {
				g.err = err // the session's end gave it back before
			}
		}
	})
	return g.err
}

type lock struct{ place }

func (l lock) Acquire(ctx context.Context) (recipes.Hold, error) {
	g, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (l lock) TryAcquire(context.Context) (recipes.Hold, error) { return nil, errNotHere("TryAcquire") }

func (l lock) Contenders(context.Context) ([]recipes.Contender, error) {
	return nil, errNotHere("Contenders")
}

type election struct{ place }

func (e election) Campaign(ctx context.Context, _ []byte) (recipes.Leadership, error) {
	g, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (e election) Leader(context.Context) (recipes.Leader, error) {
	return recipes.Leader{}, errNotHere("Leader")
}

func (e election) Acknowledged(context.Context) (recipes.Leader, error) {
	return recipes.Leader{}, errNotHere("Acknowledged")
}

func (e election) Observe(context.Context) (<-chan recipes.Leader, error) {
	return nil, errNotHere("Observe")
}

func (e election) Candidates(context.Context) ([]recipes.Contender, error) {
	return nil, errNotHere("Candidates")
}
