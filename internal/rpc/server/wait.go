package server

import "context"

// abandonable is ctx, which ends when id is abandoned too, for a call that asks
// for no grant. Whoever cancels such a call gets no answer; whoever abandons it is
// told what has become of it. Without an id it is ctx.
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

// undoable has Abandon run undo for a call that has succeeded, whose answer may still
// be lost. ctx is the call's own: if it has ended, nobody reads the answer, and undo
// runs now.
func (cs *claims) undoable(ctx context.Context, id string, undo func()) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		cs.background(undo)
	case id != "":
		cs.undos[id] = undo
		cs.undoIDs = append(cs.undoIDs, id)
		if len(cs.undoIDs) > remembered {
			delete(cs.undos, cs.undoIDs[0])
			cs.undoIDs = cs.undoIDs[1:]
		}
	}
}

// background runs f beside the session's calls, unless the session is ending: its end
// undoes what stands. It needs mu.
func (cs *claims) background(f func()) {
	if !cs.closed {
		cs.ss.tasks.Go(f)
	}
}
