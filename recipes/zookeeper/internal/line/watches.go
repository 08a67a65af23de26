package line

import (
	"context"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Watches are the watches that one waiter waits for. Those that have not fired
// when it looks again are kept, so that a waiter that watches several znodes
// does not read all of them each time. Its zero value is empty.
type Watches struct {
	connection <-chan struct{} // on which they were armed
	byName     map[string]*session.Watch
}

// Retain drops the watches of all but these entries, those that have fired, and all
// if the connection is another one: what happened in between, only a look tells.
func (w *Watches) Retain(entries []Entry, connection <-chan struct{}) {
	retained := make(map[string]*session.Watch, len(entries))
	for _, e := range entries {
		if watch := w.byName[e.Name]; watch != nil && w.connection == connection && !fired(watch) {
			retained[e.Name] = watch
		}
	}
	w.connection, w.byName = connection, retained
}

// Drop has a child read again when it is next armed.
func (w *Watches) Drop(name string) { delete(w.byName, name) }

func fired(w *session.Watch) bool { return session.Happened(w.Fired()) }

// Arm watches a child of dir, and reads it if it was not watched already.
func (w *Watches) Arm(ctx context.Context, s *session.Session, dir, name string) (node session.Node, fresh bool, err error) {
	if w.byName[name] != nil {
		return session.Node{}, false, nil
	}
	node, watch, err := s.GetW(ctx, gopath.Join(dir, name))
	if err != nil {
		return session.Node{}, false, err
	}
	w.byName[name] = watch
	return node, true, nil
}

// Wait returns nil when it is time to look again: one of the watches has fired,
// or the connection was lost.
func (w *Watches) Wait(ctx context.Context, s *session.Session, what string, disconnected <-chan struct{}) error {
	events := []<-chan struct{}{disconnected}
	for _, watch := range w.byName {
		events = append(events, watch.Fired())
	}
	return s.Wait(ctx, what, events...)
}
