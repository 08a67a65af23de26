package server

import "context"

// abandonable is ctx, which ends when id is abandoned too, for a call that asks
// for no grant and is never repeated. Whoever cancels such a call gets no answer;
// whoever abandons it is told what has become of it. Without an id it is ctx.
func (cs *claims) abandonable(ctx context.Context, id string) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	if id == "" {
		return ctx, end
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, known := cs.all[id]; known { // Abandon has overtaken it
		end()
		return ctx, end
	}
	cs.waits[id] = end
	return ctx, func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		delete(cs.waits, id)
		end()
	}
}
