package server

import "context"

// abandonable is ctx, which also ends when id is abandoned. It is for a call that
// asks for no grant. A host that cancels such a call gets no answer. A host that
// abandons it is told what has become of it. Without an id it is ctx.
func (ts *tickets) abandonable(ctx context.Context, id string) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	if id == "" {
		return ctx, end
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if _, known := ts.all[id]; known { // Abandon has overtaken it
		end()
		return ctx, end
	}
	ts.waits[id] = end
	return ctx, func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		delete(ts.waits, id)
		end()
	}
}

// undoable has Abandon run undo for a call that has succeeded, whose answer may
// still be lost. ctx is the call's own. If it has ended, the answer is not read, and
// undo runs now.
func (ts *tickets) undoable(ctx context.Context, id string, undo func()) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		ts.background(undo)
	case id != "":
		ts.undos[id] = undo
		ts.undoIDs = append(ts.undoIDs, id)
		if len(ts.undoIDs) > remembered {
			delete(ts.undos, ts.undoIDs[0])
			ts.undoIDs = ts.undoIDs[1:]
		}
	}
}

// background runs f beside the session's calls. It does nothing if the session is
// ending, because the session's end undoes everything. It needs mu.
func (ts *tickets) background(f func()) {
	if !ts.closed {
		ts.ss.tasks.Go(f)
	}
}
