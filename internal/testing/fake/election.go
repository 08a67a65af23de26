package fake

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

type election struct{ point }

func (e election) Campaign(ctx context.Context, proposal []byte) (recipes.Leadership, error) {
	h, err := e.enter(ctx, proposal, false)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (e election) Candidates(context.Context) ([]recipes.Contender, error) {
	return e.session.w.Line(e.path), e.session.Err()
}

func (e election) read() (leader recipes.Leader) {
	w := e.session.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if line := w.lines[e.path]; len(line) > 0 {
		leader = recipes.Leader{Contender: line[0].Contender, Acknowledged: line[0].acknowledged, Acknowledgement: line[0].ack}
	}
	return leader
}

func (e election) Leader(context.Context) (recipes.Leader, error) {
	if err := e.session.Err(); err != nil {
		return recipes.Leader{}, err
	}
	l := e.read()
	if l.None() {
		return l, recipes.ErrNoLeader
	}
	return l, nil
}

func (e election) Acknowledged(ctx context.Context) (recipes.Leader, error) {
	for {
		changed := e.session.w.nextChange()
		if l := e.read(); l.Acknowledged {
			return l, nil
		}
		select {
		case <-changed:
		case <-e.session.lost:
			return recipes.Leader{}, e.session.Err()
		case <-ctx.Done():
			return recipes.Leader{}, ctx.Err()
		}
	}
}

func (e election) Observe(ctx context.Context) (<-chan recipes.Leader, error) {
	if err := e.session.Err(); err != nil {
		return nil, err
	}
	out := make(chan recipes.Leader)
	go e.observe(ctx, out)
	return out, nil
}

func (e election) observe(ctx context.Context, out chan<- recipes.Leader) {
	defer close(out)
	var sent *recipes.Leader
	for {
		changed := e.session.w.nextChange()
		l := e.read()
		next := out
		if sent != nil && sent.Znode == l.Znode && sent.Acknowledged == l.Acknowledged {
			next = nil
		}
		select {
		case next <- l:
			sent = &l
		case <-changed:
		case <-ctx.Done():
			return
		case <-e.session.lost:
			return
		}
	}
}

func (h *hold) Resign(ctx context.Context) error { return h.Release(ctx) }

func (h *hold) Acknowledge(_ context.Context, data []byte) error {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if h.c.removed != nil {
		return h.c.removed
	}
	h.c.acknowledged, h.c.ack = true, data
	h.w.change()
	return nil
}
