package server

import "context"

// abandonable returns ctx with an end when id is abandoned. It is used for calls that ask for
// no grant. A host that cancels such a call gets no answer. A host that abandons it gets the
// outcome. Without an id it returns ctx.
func (a *acquisitions) abandonable(ctx context.Context, id string) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	if id == "" {
		return ctx, end
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.all[id]; known { // Abandon has overtaken it
		end()
		return ctx, end
	}
	a.waits[id] = end
	return ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waits, id)
		end()
	}
}

// undoable makes Abandon run undo for a call that has succeeded, whose answer may still be
// lost. ctx is the call's. If it has ended, the answer is not read, and undo runs now.
func (a *acquisitions) undoable(ctx context.Context, id string, undo func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		a.background(undo)
	case id != "":
		a.undos[id] = undo
		a.undoIDs = append(a.undoIDs, id)
		if len(a.undoIDs) > remembered {
			delete(a.undos, a.undoIDs[0])
			a.undoIDs = a.undoIDs[1:]
		}
	}
}

// background runs f besides the session's calls. It does nothing if the session is ending,
// because the session's end undoes everything. The caller holds mu.
func (a *acquisitions) background(f func()) {
	if !a.closed {
		a.ss.tasks.Go(f)
	}
}
