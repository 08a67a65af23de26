package fake

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

type election struct{ l *lock }

func (e *election) Path() string { return e.l.path }

func (e *election) Campaign(ctx context.Context, proposal []byte) (recipes.Leadership, error) {
	h, err := e.l.contend(ctx, "n_", proposal, false)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (e *election) Candidates(ctx context.Context) ([]recipes.Contender, error) {
	return e.l.Contenders(ctx)
}

func (e *election) look() (recipes.Leader, <-chan struct{}) {
	w := e.l.s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.first(e.l.path)
	if n == nil {
		return recipes.Leader{}, w.changed
	}
	l := recipes.Leader{Contender: n.Contender, Acknowledged: n.acked, Acknowledgement: n.ack}
	l.Holds = true
	return l, w.changed
}

func (e *election) Leader(context.Context) (recipes.Leader, error) {
	if err := e.l.s.Err(); err != nil {
		return recipes.Leader{}, err
	}
	l, _ := e.look()
	if l.None() {
		return l, recipes.ErrNoLeader
	}
	return l, nil
}

func (e *election) Acknowledged(ctx context.Context) (recipes.Leader, error) {
	for {
		l, changed := e.look()
		if l.Acknowledged {
			return l, nil
		}
		select {
		case <-changed:
		case <-e.l.s.lost:
			return recipes.Leader{}, e.l.s.Err()
		case <-ctx.Done():
			return recipes.Leader{}, ctx.Err()
		}
	}
}

func (e *election) Observe(ctx context.Context) (<-chan recipes.Leader, error) {
	if err := e.l.s.Err(); err != nil {
		return nil, err
	}
	out := make(chan recipes.Leader)
	go func() {
		defer close(out)
		var told *recipes.Leader
		for {
			l, changed := e.look()
			if told == nil || told.Znode != l.Znode || told.Acknowledged != l.Acknowledged {
				select {
				case out <- l:
					told = &l
				case <-ctx.Done():
					return
				case <-e.l.s.lost:
					return
				}
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-e.l.s.lost:
				return
			}
		}
	}()
	return out, nil
}
