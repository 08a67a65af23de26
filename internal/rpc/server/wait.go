package server

import "context"

// abandonable returns a context that also ends when id is abandoned. It is used for calls that
// ask for no grant. A host that cancels such a call gets no answer. A host that abandons it
// gets the outcome. If id is empty, only ctx and the returned function end the context.
func (a *acquisitions) abandonable(ctx context.Context, id string) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	if id == "" {
		return ctx, end
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.all[id]; known { // Abandon has arrived before the call
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

// undoable makes Abandon of id run undo. The call has succeeded, but its answer may still be
// lost. ctx is the call's. If it has ended, the host does not read the answer, and undo runs
// now.
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

// background runs f in a goroutine of the session. It does nothing if the session is ending,
// because that undoes everything. The caller holds mu.
func (a *acquisitions) background(f func()) {
	if !a.closed {
		a.ss.tasks.Go(f)
	}
}
